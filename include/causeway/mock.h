/* What libur_adapter_mock.so.0 exports beside the getters of every adapter: C programs put functions
 * before, after or in the place of its entries. Left alone, every entry succeeds and does nothing.
 *
 * Hooks belong to the process. They may be put and taken away at any time, from any thread, also by
 * a hook; a call that is under way goes on with those it began with. */
#ifndef CAUSEWAY_MOCK_H
#define CAUSEWAY_MOCK_H

#include <unified-runtime/ur_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hook. `params` points at one pointer for each argument of the entry, in order: what the entry's
 * `ur_*_params_t` of ur_api.h holds. What a hook writes there is what those after it read. `result`
 * is the code so far: UR_RESULT_SUCCESS, or after the entry what it gave. `data` is what came with
 * the hook. */
typedef ur_result_t (*cw_mock_callback_t)(void *params, ur_result_t result, void *data);

/* Puts a hook before the entry of this name ("urContextCreate"); what it gives, if not
 * UR_RESULT_SUCCESS, ends the call with that code. NULL for `callback` takes the hook away.
 * UR_RESULT_ERROR_INVALID_NULL_POINTER: `entry` is NULL. UR_RESULT_ERROR_INVALID_VALUE: there is
 * no such entry. */
ur_result_t cwMockSetBefore(const char *entry, cw_mock_callback_t callback, void *data);

/* Puts a hook in the place of the entry: the entry does nothing by itself, and what the hook gives
 * is the code. Otherwise as cwMockSetBefore. */
ur_result_t cwMockSetReplace(const char *entry, cw_mock_callback_t callback, void *data);

/* Puts a hook after the entry, where no hook before it ended the call; what it gives is the code.
 * Otherwise as cwMockSetBefore. */
ur_result_t cwMockSetAfter(const char *entry, cw_mock_callback_t callback, void *data);

/* Takes away all hooks of an entry; of all entries if `entry` is NULL. UR_RESULT_ERROR_INVALID_VALUE:
 * there is no such entry. */
ur_result_t cwMockReset(const char *entry);

#ifdef __cplusplus
}
#endif

#endif
