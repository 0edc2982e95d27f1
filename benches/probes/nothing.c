/* An adapter whose entries do nothing, so that the time of a call is the overhead of the loader. */
#include <stddef.h>
#include <unified-runtime/ur_api.h>
#include <unified-runtime/ur_ddi.h>

static struct ur_dditable_t table;
static const struct ur_dditable_t *object = &table;

static ur_result_t adapter_get(uint32_t room, ur_adapter_handle_t *adapters, uint32_t *count) {
  if (adapters && room)
    adapters[0] = (ur_adapter_handle_t)&object;
  if (count)
    *count = 1;
  return UR_RESULT_SUCCESS;
}
static ur_result_t queue_flush(ur_queue_handle_t queue) {
  (void)queue;
  return UR_RESULT_SUCCESS;
}
static ur_result_t event_get_info(ur_event_handle_t event, ur_event_info_t name, size_t size, void *value,
                                  size_t *size_ret) {
  (void)event, (void)name, (void)size, (void)value, (void)size_ret;
  return UR_RESULT_SUCCESS;
}
static ur_result_t usm_memcpy(ur_queue_handle_t queue, bool blocking, void *to, const void *from, size_t size,
                              uint32_t count, const ur_event_handle_t *waits, ur_event_handle_t *event) {
  (void)queue, (void)blocking, (void)to, (void)from, (void)size, (void)count, (void)waits, (void)event;
  return UR_RESULT_SUCCESS;
}

ur_result_t urGetAdapterProcAddrTable(ur_api_version_t version, struct ur_adapter_dditable_t *to) {
  (void)version;
  table.Adapter.pfnGet = adapter_get;
  *to = table.Adapter;
  return UR_RESULT_SUCCESS;
}
ur_result_t urGetQueueProcAddrTable(ur_api_version_t version, struct ur_queue_dditable_t *to) {
  (void)version;
  table.Queue.pfnFlush = queue_flush;
  *to = table.Queue;
  return UR_RESULT_SUCCESS;
}
ur_result_t urGetEventProcAddrTable(ur_api_version_t version, struct ur_event_dditable_t *to) {
  (void)version;
  table.Event.pfnGetInfo = event_get_info;
  *to = table.Event;
  return UR_RESULT_SUCCESS;
}
ur_result_t urGetEnqueueProcAddrTable(ur_api_version_t version, struct ur_enqueue_dditable_t *to) {
  (void)version;
  table.Enqueue.pfnUSMMemcpy = usm_memcpy;
  *to = table.Enqueue;
  return UR_RESULT_SUCCESS;
}
