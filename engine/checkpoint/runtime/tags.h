/* Where tags begin (layout.h): what the pass and the runtime must agree about. */
#ifndef MVE_CHECKPOINT_TAGS_H
#define MVE_CHECKPOINT_TAGS_H

#define TAGS_AT		0x10000000ul

#endif
