/* For code that is to be one stretch, or a constant where it is given one. */
#ifndef MVE_CORE_INLINE_H
#define MVE_CORE_INLINE_H

#define INLINE inline __attribute__((always_inline))

#endif
