#include "Runtime/SimShadow.h"

namespace fusec::rt {

bool SimShadow::unorderedWrite(const Cell &c, const SimAccess &a) {
  if (c.writeBlock == 0 || (c.writeBlock == a.block && c.writeThread == a.thread))
    return false;
  other = c.writeThread;
  if (c.writeBlock != a.block)
    return true;
  return c.writeEpoch == a.epoch && !(c.writeUnit == a.unit && c.writeUnitEpoch < a.unitEpoch);
}

bool SimShadow::unorderedRead(const Cell &c, const SimAccess &a) {
  if (c.readers == None || (c.readers == One && c.readBlock == a.block && c.readThread == a.thread))
    return false;
  other = c.readThread;
  if (c.readBlock != a.block)
    return true;
  return c.readEpoch == a.epoch &&
         !(c.readers != Many && c.readUnit == a.unit && c.readUnitEpoch < a.unitEpoch);
}

SimShadow::Found SimShadow::access(size_t granule, const SimAccess &a, uint64_t oldestBlock,
                                   bool mustBeWritten) {
  Cell &c = cells[granule];
  if (c.writeBlock < oldestBlock)
    c.writeBlock = 0;
  if (c.readBlock < oldestBlock)
    c.readers = None;
  if (mustBeWritten && !a.write && c.writeBlock == 0)
    return Found::Uninitialised;
  if (unorderedWrite(c, a))
    return Found::Race;
  if (a.write) {
    if (unorderedRead(c, a))
      return Found::Race;
    c.writeBlock = a.block;
    c.writeEpoch = a.epoch;
    c.writeUnitEpoch = a.unitEpoch;
    c.writeThread = static_cast<int16_t>(a.thread);
    c.writeUnit = static_cast<int16_t>(a.unit);
    return Found::Nothing;
  }
  const bool sameEpoch = c.readers != None && c.readBlock == a.block && c.readEpoch == a.epoch;
  if (c.readers != None && c.readBlock != a.block)
    c.readers = Many; // of several blocks: a later write by any is a race
  else if (!sameEpoch)
    c.readers = One;
  else if (c.readers == One && c.readThread != a.thread)
    c.readers = c.readUnit == a.unit ? OneUnit : Many;
  else if (c.readers == OneUnit && c.readUnit != a.unit)
    c.readers = Many;
  if (c.readers == Many && c.readBlock != a.block)
    return Found::Nothing; // keeps the other block's name
  c.readBlock = a.block;
  c.readEpoch = a.epoch;
  c.readUnitEpoch = a.unitEpoch;
  c.readThread = static_cast<int16_t>(a.thread);
  c.readUnit = static_cast<int16_t>(a.unit);
  return Found::Nothing;
}

} // namespace fusec::rt
