/* A static program that ends at once, for parts/forks.py to start. */
int main(void)
{
	return 0;
}
