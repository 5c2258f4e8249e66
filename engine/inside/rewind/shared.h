/* Memory that processes share, as it was when the image was taken. */
#ifndef MVE_INSIDE_SHARED_H
#define MVE_INSIDE_SHARED_H

#include <stdbool.h>

/* All threads stand: copies it; false: there is too much, or no memory for that. */
bool shared_keep(void);
/* The copy is the image's alone. */
void shared_drop(void);
/* In the image that goes on: it is as it was; false: it cannot be. */
bool shared_put_back(void);

#endif
