#pragma once

namespace fusec::rt {

/// Kernels that measure an NVIDIA device (CalibrateGpu.cpp), for the driver to translate: every one since compute
/// capability 7.0, whose memory model the grid's barrier needs.
inline constexpr char kCalibratePtx[] = R"ptx(.version 7.0
.target sm_70
.address_size 64

.visible .entry empty() { ret; }

// `rounds` barriers of the block's threads.
.visible .entry block_barriers(.param .u64 rounds)
{
  .reg .pred %again;
  .reg .u64 %n;
  ld.param.u64 %n, [rounds];
loop:
  bar.sync 0;
  sub.u64 %n, %n, 1;
  setp.ne.u64 %again, %n, 0;
  @%again bra loop;
  ret;
}

// `rounds` barriers of all `blocks` blocks, which the word counts; it is 0 before.
.visible .entry grid_barriers(.param .u64 rounds, .param .u64 blocks, .param .u64 word)
{
  .reg .pred %again, %first;
  .reg .u32 %thread;
  .reg .u64 %n, %count, %at, %goal, %now, %one;
  ld.param.u64 %n, [rounds];
  ld.param.u64 %count, [blocks];
  ld.param.u64 %at, [word];
  cvta.to.global.u64 %at, %at;
  mov.u32 %thread, %tid.x;
  setp.eq.u32 %first, %thread, 0;
  mov.u64 %goal, 0;
  mov.u64 %one, 1;
loop:
  bar.sync 0;
  add.u64 %goal, %goal, %count;
  @!%first bra passed;
  red.release.gpu.global.add.u64 [%at], %one;
wait:
  ld.acquire.gpu.global.u64 %now, [%at];
  setp.lt.u64 %again, %now, %goal;
  @%again bra wait;
passed:
  bar.sync 0;
  sub.u64 %n, %n, 1;
  setp.ne.u64 %again, %n, 0;
  @%again bra loop;
  ret;
}

// Every thread reads 16 bytes, 64 times a round, from 4 KiB of the block's own memory.
.visible .entry read_shared(.param .u64 rounds, .param .u64 out)
{
  .reg .pred %again;
  .reg .u32 %at, %i, %sum, %v<4>;
  .reg .u64 %n, %to;
  .shared .align 16 .b8 own[4096];
  ld.param.u64 %n, [rounds];
  ld.param.u64 %to, [out];
  cvta.to.global.u64 %to, %to;
  mov.u32 %at, %tid.x;
  and.b32 %at, %at, 255;
  shl.b32 %at, %at, 4;
  mov.u32 %i, own;
  add.u32 %at, %at, %i;
  mov.u32 %sum, 0;
  st.shared.v4.u32 [%at], {%sum, %sum, %sum, %sum};
  bar.sync 0;
round:
  mov.u32 %i, 64;
next:
  ld.volatile.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%at];
  xor.b32 %v0, %v0, %v1;
  xor.b32 %v2, %v2, %v3;
  xor.b32 %v0, %v0, %v2;
  xor.b32 %sum, %sum, %v0;
  sub.u32 %i, %i, 1;
  setp.ne.u32 %again, %i, 0;
  @%again bra next;
  sub.u64 %n, %n, 1;
  setp.ne.u64 %again, %n, 0;
  @%again bra round;
  setp.eq.u32 %again, %sum, 1;
  @%again st.global.u32 [%to], %sum;
  ret;
}

// `rounds` times all of `bytes` bytes, past the first cache, 16 at a time and a grid apart: four reads a turn, or with
// `copies` two reads that are written to `to`. What all threads together read in a turn divides `bytes`.
.visible .entry sweep_global(.param .u64 rounds, .param .u64 from, .param .u64 bytes, .param .u64 to,
                             .param .u64 copies)
{
  .reg .pred %again, %copies;
  .reg .u32 %width, %block, %thread, %sum, %v<16>;
  .reg .u64 %n, %begin, %end, %at, %to, %away, %target, %start, %step;
  ld.param.u64 %n, [rounds];
  ld.param.u64 %begin, [from];
  ld.param.u64 %end, [bytes];
  ld.param.u64 %to, [to];
  ld.param.u64 %target, [copies];
  setp.ne.u64 %copies, %target, 0;
  cvta.to.global.u64 %begin, %begin;
  cvta.to.global.u64 %to, %to;
  sub.u64 %away, %to, %begin;
  add.u64 %end, %begin, %end;
  mov.u32 %width, %ntid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %thread, %block, %width, %thread;
  mul.wide.u32 %start, %thread, 16;
  add.u64 %start, %begin, %start;
  mov.u32 %block, %nctaid.x;
  mul.lo.u32 %block, %block, %width;
  mul.wide.u32 %step, %block, 16;
  mov.u32 %sum, 0;
round:
  mov.u64 %at, %start;
  @%copies bra copy;
read:
  ld.relaxed.gpu.global.v4.u32 {%v0, %v1, %v2, %v3}, [%at];
  add.u64 %at, %at, %step;
  ld.relaxed.gpu.global.v4.u32 {%v4, %v5, %v6, %v7}, [%at];
  add.u64 %at, %at, %step;
  ld.relaxed.gpu.global.v4.u32 {%v8, %v9, %v10, %v11}, [%at];
  add.u64 %at, %at, %step;
  ld.relaxed.gpu.global.v4.u32 {%v12, %v13, %v14, %v15}, [%at];
  add.u64 %at, %at, %step;
  xor.b32 %v0, %v0, %v1;
  xor.b32 %v2, %v2, %v3;
  xor.b32 %v4, %v4, %v5;
  xor.b32 %v6, %v6, %v7;
  xor.b32 %v8, %v8, %v9;
  xor.b32 %v10, %v10, %v11;
  xor.b32 %v12, %v12, %v13;
  xor.b32 %v14, %v14, %v15;
  xor.b32 %v0, %v0, %v2;
  xor.b32 %v4, %v4, %v6;
  xor.b32 %v8, %v8, %v10;
  xor.b32 %v12, %v12, %v14;
  xor.b32 %v0, %v0, %v4;
  xor.b32 %v8, %v8, %v12;
  xor.b32 %v0, %v0, %v8;
  xor.b32 %sum, %sum, %v0;
  setp.lt.u64 %again, %at, %end;
  @%again bra read;
  bra passed;
copy:
  add.u64 %target, %at, %away;
  ld.relaxed.gpu.global.v4.u32 {%v0, %v1, %v2, %v3}, [%at];
  add.u64 %at, %at, %step;
  ld.relaxed.gpu.global.v4.u32 {%v4, %v5, %v6, %v7}, [%at];
  add.u64 %at, %at, %step;
  st.global.v4.u32 [%target], {%v0, %v1, %v2, %v3};
  add.u64 %target, %target, %step;
  st.global.v4.u32 [%target], {%v4, %v5, %v6, %v7};
  setp.lt.u64 %again, %at, %end;
  @%again bra copy;
passed:
  sub.u64 %n, %n, 1;
  setp.ne.u64 %again, %n, 0;
  @%again bra round;
  // What was read is wanted.
  setp.eq.u32 %again, %sum, 1;
  @%again st.global.u32 [%to], %sum;
  ret;
}
)ptx";

} // namespace fusec::rt
