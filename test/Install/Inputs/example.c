/* Runs a bundle once, inputs without a value of their own being zeros, and prints the size of each output. */
#include <fusec/runtime.h>

#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, fusert_last_error());
  return 1;
}

int main(int argc, char **argv) {
  fusert_model model;
  fusert_context context;
  fusert_model_info info = {.struct_size = sizeof info};
  fusert_value_info value = {.struct_size = sizeof value};
  void *data;
  size_t bytes;

  if (fusert_load_file(argc > 1 ? argv[1] : NULL, NULL, &model))
    return failed("load");
  if (fusert_context_create(model, NULL, &context))
    return failed("context");
  fusert_get_model_info(model, &info);
  for (size_t i = 0; i < info.inputs; i++) {
    fusert_get_input_info(model, i, &value);
    if (value.has_default)
      continue;
    if (fusert_input_buffer(context, i, &data, &bytes))
      return failed("input");
    memset(data, 0, bytes);
  }
  if (fusert_run(context, NULL, 0, NULL, 0))
    return failed("run");
  for (size_t i = 0; i < info.outputs; i++) {
    fusert_get_output_info(model, i, &value);
    if (fusert_output_buffer(context, i, &data, &bytes))
      return failed("output");
    printf("%s: %zu bytes\n", value.name, bytes);
  }
  fusert_context_destroy(context);
  return fusert_unload(model) ? failed("unload") : 0;
}
