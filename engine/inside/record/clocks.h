/* A leader's clocks that are told on the program's stack. */
#ifndef MVE_INSIDE_CLOCKS_H
#define MVE_INSIDE_CLOCKS_H

void clocks_prepare(void);

#endif
