/* Numbers of other sizes and kinds. */
#ifdef NEW
typedef long A; typedef short B; typedef unsigned C; typedef double D; typedef float E; typedef long F;
#else
typedef int A; typedef long B; typedef unsigned char C; typedef int D; typedef double E; typedef float F;
#endif
struct all { A a; B b; C c; D d; E e; F f; } one;
static A deep[3];
static void make(void)
{
	one = (struct all){ -7, -300, 200, -12, 2.5, 8 };
	deep[2] = -9;
}
static void show(void)
{
	printf("%ld %ld %u %g %g %ld %ld\n", (long)one.a, (long)one.b, (unsigned)one.c, (double)one.d,
		(double)one.e, (long)one.f, (long)deep[2]);
}
