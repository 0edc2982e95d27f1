/* Does what its arguments say, one word after the other, and prints what came of each. The same
 * program runs against this loader and against another: what they print is then compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unified-runtime/ur_api.h>
#include <unified-runtime/ur_ddi.h>

enum { ROOM = 64 };
static ur_loader_config_handle_t config;
static ur_adapter_handle_t adapters[ROOM];
static uint32_t found;

static void say(const char *what, ur_result_t result) {
  printf("%s %d\n", what, (int)result);
  fflush(stdout);
}
static void list_adapters(void) {
  say("adapters", urAdapterGet(ROOM, adapters, &found));
  for (uint32_t at = 0; at < found && at < ROOM; at++) {
    ur_backend_t backend = UR_BACKEND_FORCE_UINT32;
    urAdapterGetInfo(adapters[at], UR_ADAPTER_INFO_BACKEND, sizeof backend, &backend, NULL);
    printf("  backend %d\n", (int)backend);
  }
}
/* Every platform of every adapter, to `each`. */
static void platforms(void (*each)(ur_platform_handle_t)) {
  for (uint32_t at = 0; at < found && at < ROOM; at++) {
    ur_platform_handle_t all[ROOM];
    uint32_t count = 0;
    say("platforms", urPlatformGet(adapters[at], ROOM, all, &count));
    for (uint32_t p = 0; p < count && p < ROOM; p++)
      each(all[p]);
  }
}
static void name_of(ur_platform_handle_t platform) {
  char text[256] = "";
  urPlatformGetInfo(platform, UR_PLATFORM_INFO_NAME, sizeof text, text, NULL);
  printf("  platform %s\n", text);
}
static void print_devices(const ur_device_handle_t *devices, uint32_t count) {
  for (uint32_t at = 0; at < count && at < ROOM; at++) {
    char text[256] = "";
    ur_device_handle_t parent = NULL;
    ur_device_type_t type = UR_DEVICE_TYPE_FORCE_UINT32;
    urDeviceGetInfo(devices[at], UR_DEVICE_INFO_NAME, sizeof text, text, NULL);
    urDeviceGetInfo(devices[at], UR_DEVICE_INFO_TYPE, sizeof type, &type, NULL);
    urDeviceGetInfo(devices[at], UR_DEVICE_INFO_PARENT_DEVICE, sizeof parent, &parent, NULL);
    printf("  device type %d%s %s\n", (int)type, parent ? " part" : "", text);
  }
}
static void devices_of(ur_platform_handle_t platform) {
  ur_device_handle_t all[ROOM];
  uint32_t count = 0;
  say("devices", urDeviceGet(platform, UR_DEVICE_TYPE_ALL, ROOM, all, &count));
  print_devices(all, count);
}
static void selected_of(ur_platform_handle_t platform) {
  ur_device_handle_t all[ROOM];
  uint32_t count = 0, again = 0;
  ur_result_t result = urDeviceGetSelected(platform, UR_DEVICE_TYPE_ALL, 0, NULL, &count);
  say("selected", result);
  printf("  count %u\n", (unsigned)count);
  if (result == UR_RESULT_SUCCESS && count) {
    say("selected", urDeviceGetSelected(platform, UR_DEVICE_TYPE_ALL, count < ROOM ? count : ROOM, all, &again));
    print_devices(all, count);
  }
}
/* Calls that have nothing to be sent by. */
static void nothing(void) {
  ur_context_handle_t context = NULL;
  ur_device_handle_t none = NULL;
  say("null device", urDeviceRetain(NULL));
  say("null queue", urQueueFinish(NULL));
  say("no events", urEventWait(0, NULL));
  say("no devices", urContextCreate(0, NULL, NULL, &context));
  say("null in a list", urContextCreate(1, &none, NULL, &context));
}
static void describe_config(void) {
  char text[1024] = "";
  size_t size = 0;
  uint32_t count = 0;
  say("layers", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_AVAILABLE_LAYERS, sizeof text, text, &size));
  printf("  %zu %s\n", size, text);
  say("small", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_AVAILABLE_LAYERS, 3, text, &size));
  say("references", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_REFERENCE_COUNT, sizeof count, &count, &size));
  printf("  %u in %zu\n", (unsigned)count, size);
  say("nowhere", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_REFERENCE_COUNT, 0, NULL, NULL));
  say("no size", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_REFERENCE_COUNT, 0, &count, NULL));
  say("no place", urLoaderConfigGetInfo(config, UR_LOADER_CONFIG_INFO_REFERENCE_COUNT, 4, NULL, NULL));
  say("strange", urLoaderConfigGetInfo(config, (ur_loader_config_info_t)77, 4, &count, &size));
  say("null config", urLoaderConfigGetInfo(NULL, UR_LOADER_CONFIG_INFO_REFERENCE_COUNT, 4, &count, &size));
}
static ur_code_location_t nowhere(void *data) {
  ur_code_location_t location = {"caller", "words.c", 1, 2};
  (void)data;
  return location;
}
static int config_word(const char *word) {
  if (!strcmp(word, "config")) say(word, urLoaderConfigCreate(&config));
  else if (!strcmp(word, "config-null")) say(word, urLoaderConfigCreate(NULL));
  else if (!strcmp(word, "retain")) say(word, urLoaderConfigRetain(config));
  else if (!strcmp(word, "release")) say(word, urLoaderConfigRelease(config));
  else if (!strcmp(word, "retain-null")) say(word, urLoaderConfigRetain(NULL));
  else if (!strcmp(word, "release-null")) say(word, urLoaderConfigRelease(NULL));
  else if (!strcmp(word, "describe")) describe_config();
  else if (!strcmp(word, "mock")) say(word, urLoaderConfigSetMockingEnabled(config, 1));
  else if (!strcmp(word, "mock-null")) say(word, urLoaderConfigSetMockingEnabled(NULL, 1));
  else if (!strcmp(word, "where")) say(word, urLoaderConfigSetCodeLocationCallback(config, nowhere, NULL));
  else if (!strcmp(word, "where-null")) say(word, urLoaderConfigSetCodeLocationCallback(config, NULL, NULL));
  else if (!strcmp(word, "layer-null")) say(word, urLoaderConfigEnableLayer(config, NULL));
  else if (!strncmp(word, "layer=", 6)) say(word, urLoaderConfigEnableLayer(config, word + 6));
  else return 0;
  return 1;
}
static void table(ur_api_version_t version, const char *what) {
  struct ur_device_dditable_t device;
  memset(&device, 0, sizeof device);
  say(what, urGetDeviceProcAddrTable(version, &device));
  printf("  %s\n", device.pfnGet ? "filled" : "empty");
}

int main(int count, char **words) {
  for (int at = 1; at < count; at++) {
    const char *word = words[at];
    if (config_word(word)) continue;
    if (!strcmp(word, "init")) say(word, urLoaderInit(0, config));
    else if (!strcmp(word, "init-gpu")) say(word, urLoaderInit(UR_DEVICE_INIT_FLAG_GPU, NULL));
    else if (!strcmp(word, "init-strange")) say(word, urLoaderInit(0x40000000, NULL));
    else if (!strcmp(word, "down")) say(word, urLoaderTearDown());
    else if (!strcmp(word, "adapters")) list_adapters();
    else if (!strcmp(word, "adapters-null")) say(word, urAdapterGet(0, NULL, &found));
    else if (!strcmp(word, "adapters-none")) say(word, urAdapterGet(0, NULL, NULL));
    else if (!strcmp(word, "adapters-zero")) say(word, urAdapterGet(0, adapters, NULL));
    else if (!strcmp(word, "adapters-nowhere")) say(word, urAdapterGet(1, NULL, NULL));
    else if (!strcmp(word, "adapters-one")) say(word, urAdapterGet(1, adapters, &found));
    else if (!strcmp(word, "count")) printf("  %u\n", (unsigned)found);
    else if (!strcmp(word, "free")) for (uint32_t i = 0; i < found; i++) say(word, urAdapterRelease(adapters[i]));
    else if (!strcmp(word, "platforms")) platforms(name_of);
    else if (!strcmp(word, "devices")) platforms(devices_of);
    else if (!strcmp(word, "selected")) platforms(selected_of);
    else if (!strcmp(word, "selected-null")) say(word, urDeviceGetSelected(NULL, UR_DEVICE_TYPE_ALL, 0, NULL, &found));
    else if (!strcmp(word, "nothing")) nothing();
    else if (!strcmp(word, "table")) table(UR_API_VERSION_CURRENT, word);
    else if (!strcmp(word, "table-old")) table((ur_api_version_t)1, word);
    else if (!strcmp(word, "table-null")) say(word, urGetDeviceProcAddrTable(UR_API_VERSION_CURRENT, NULL));
    else return fprintf(stderr, "no word %s\n", word), 2;
  }
  return 0;
}
