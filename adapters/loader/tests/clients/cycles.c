/* Starts and ends the loader a thousand times, and from sixteen threads at once, with calls in between
 * and after; counts descriptors, mappings and memory, which must not grow. */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unified-runtime/ur_api.h>

enum { TIMES = 1000, THREADS = 16, ROUNDS = 200 };

#define MUST(what)                                                                                                     \
  do {                                                                                                                 \
    if (!(what)) {                                                                                                     \
      fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                                               \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static unsigned descriptors(void) {
  unsigned count = 0;
  DIR *folder = opendir("/proc/self/fd");
  MUST(folder);
  while (readdir(folder))
    count++;
  closedir(folder);
  return count;
}
static unsigned mappings(void) {
  unsigned count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  MUST(maps);
  for (int c; (c = fgetc(maps)) != EOF;)
    count += c == '\n';
  fclose(maps);
  return count;
}
static size_t memory(void) {
  struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

static void cycle(void) {
  ur_loader_config_handle_t config = NULL;
  ur_adapter_handle_t adapter = NULL;
  uint32_t count = 0;
  MUST(urLoaderConfigCreate(&config) == UR_RESULT_SUCCESS);
  MUST(urLoaderInit(0, config) == UR_RESULT_SUCCESS);
  MUST(urLoaderConfigRelease(config) == UR_RESULT_SUCCESS);
  MUST(urAdapterGet(1, &adapter, &count) == UR_RESULT_SUCCESS);
  MUST(adapter && count == 1);
  MUST(urAdapterRelease(adapter) == UR_RESULT_SUCCESS);
  MUST(urLoaderTearDown() == UR_RESULT_SUCCESS);
}
static void *cycles(void *unused) {
  for (int round = 0; round < ROUNDS; round++)
    cycle();
  return unused;
}

int main(void) {
  uint32_t count = 0;
  for (int warm = 0; warm < 20; warm++)
    cycle();
  unsigned fds = descriptors(), maps = mappings();
  size_t bytes = memory();
  for (int time = 0; time < TIMES; time++) {
    cycle();
    MUST(urAdapterGet(0, NULL, &count) == UR_RESULT_ERROR_UNINITIALIZED);
    MUST(urLoaderTearDown() == UR_RESULT_ERROR_UNINITIALIZED);
  }
  MUST(descriptors() == fds);
  MUST(mappings() <= maps + 2);
  MUST(memory() < bytes + 10 * 1024);

  pthread_t threads[THREADS];
  for (int at = 0; at < THREADS; at++)
    MUST(pthread_create(&threads[at], NULL, cycles, NULL) == 0);
  for (int at = 0; at < THREADS; at++)
    MUST(pthread_join(threads[at], NULL) == 0);
  MUST(descriptors() == fds);
  MUST(urAdapterGet(0, NULL, &count) == UR_RESULT_ERROR_UNINITIALIZED);
  MUST(urLoaderTearDown() == UR_RESULT_ERROR_UNINITIALIZED);
  cycle();
  printf("cycles: fine\n");
  return 0;
}
