#ifndef UR_MAKE_VERSION
/** A version of the interface as one number. */
#define UR_MAKE_VERSION(_major, _minor) (((_major) << 16) | ((_minor) & 0xffff))
#endif
#ifndef UR_MAJOR_VERSION
/** The major version in such a number. */
#define UR_MAJOR_VERSION(_ver) ((_ver) >> 16)
#endif
#ifndef UR_MINOR_VERSION
/** The minor version in such a number. */
#define UR_MINOR_VERSION(_ver) ((_ver) & 0xffff)
#endif

/* The calling convention, and the visibility of exported functions. */
#ifndef UR_APICALL
#ifdef _WIN32
#define UR_APICALL __cdecl
#else
#define UR_APICALL
#endif
#endif
#ifdef _WIN32
#define UR_CAUSEWAY_SHOWN __declspec(dllexport)
#elif defined(__GNUC__) && __GNUC__ >= 4
#define UR_CAUSEWAY_SHOWN __attribute__((visibility("default")))
#else
#define UR_CAUSEWAY_SHOWN
#endif
#ifndef UR_APIEXPORT
#define UR_APIEXPORT UR_CAUSEWAY_SHOWN
#endif
#ifndef UR_DLLEXPORT
#define UR_DLLEXPORT UR_CAUSEWAY_SHOWN
#endif

#ifndef UR_BIT
/** The flag at a bit. */
#define UR_BIT(_i) (1 << (_i))
#endif
