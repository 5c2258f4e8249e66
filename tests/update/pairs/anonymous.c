/* Structures without a name, and ones that only a typedef names; shared and circular. */
// xf: transform pair { third = 3; }
typedef struct { int first, second;
#ifdef NEW
	int third;
#endif
} pair;
struct tree { struct { struct tree *left, *right; }; struct tree *up; pair *shared; pair own; };
static struct tree *root;
static pair *common;
static void make(void)
{
	common = calloc(1, sizeof(*common));
	common->first = 1;
	common->second = 2;
	root = calloc(1, sizeof(*root));
	root->left = calloc(1, sizeof(*root));
	root->right = calloc(1, sizeof(*root));
	root->left->up = root->right->up = root;
	root->left->shared = root->right->shared = common;
	root->right->own.second = 22;
#ifdef NEW
	common->third = root->own.third = root->left->own.third = root->right->own.third = 3;
#endif
}
static void show(void)
{
	printf("%d %d %d %d\n", root->left->up == root, root->right->shared == common,
		common->second, root->right->own.second);
#ifdef NEW
	printf("%d %d\n", common->third, root->left->own.third);
#endif
}
