/* ld: -static */
/* show, as a static binary: for chroot, and for exec of another kind. */
#include "show.c"
