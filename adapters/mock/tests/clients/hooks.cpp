#include "hooks.c"
