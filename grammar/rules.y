/*
 * The grammar of the rule language; GRAMMAR.md is its description in words.
 * Each action is one constructor call (rulec/read/ast.c), the place first.  After an
 * error the parser goes on at the next item that begins with a keyword, so one
 * run shows several errors; such a file is never compiled.
 */
%require "3.8"
%define api.pure full
%define api.prefix {rules_yy}
%define api.location.type {struct loc}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param { void *scanner }
%parse-param { struct parse *p }

%code requires {
#include "rulec/read/ast.h"
}

%code {
#include "rulec/read/parse.h"

int rules_yylex(YYSTYPE *value, struct loc *loc, void *scanner);
static void rules_yyerror(struct loc *loc, void *scanner, struct parse *p, const char *text);

#define YYLLOC_DEFAULT(now, rhs, n) parse_span(&(now), &YYRHSLOC(rhs, n ? 1 : 0), \
	&YYRHSLOC(rhs, n), n)
}

%union {
	const char *name;
	struct text text;
	struct arg *arg;
	struct call *call;
	struct code *code;
	struct step *step;
	struct out *out;
	struct attr *attr;
	struct rule *rule;
	struct item *item;
	struct pattern *pattern;
}

%token T_INCLUDE "`#include`" T_USE "`use`" T_GROUP "`group`" T_LET "`let`"
%token T_RULE "`rule`" T_BEGIN "`begin`" T_NOTHING "`nothing`" T_AS "`as`"
%token T_TRANSFORM "`transform`"
%token T_TO "`=>`" T_ARROW "`->`" T_ANY "`_`"
%token <name> T_ID "a name" T_ATTR "an attribute" T_WORD "a version"
%token <name> T_ATTR_OF "an attribute with a value"
%token <text> T_NUMBER "a number" T_STRING "a string" T_REGEX "a regular expression"
%token <text> T_C "C in braces"
%token '(' "`(`" ')' "`)`" '{' "`{`" '}' "`}`" ',' "`,`" '=' "`=`" '|' "`|`" '*' "`*`"
%token '~' "`~`" '-' "`-`"
%token YYEOF 0 "the end of the file"

%type <item> item keyword_item
%type <rule> rule named_rule left
%type <attr> attrs attr
%type <step> steps step guarded
%type <call> alt call calls
%type <arg> args arg names
%type <code> guard
%type <out> outs out out_call right
%type <pattern> pattern one_pattern
%type <name> value

%%

file:
	%empty
	| file item		{ parse_item(p, $2); }
	| file error keyword_item	{ parse_item(p, $3); }
	;

item:
	keyword_item
	| rule			{ $$ = ast_item_rule(@$, p, $1); }
	;

keyword_item:
	T_INCLUDE T_STRING	{ $$ = ast_item_path(@$, p, ITEM_INCLUDE, $2); }
	| T_USE T_STRING	{ $$ = ast_item_path(@$, p, ITEM_USE, $2); }
	| T_GROUP T_ID '=' '{' calls '}'	{ $$ = ast_item_group(@$, p, @2, $2, $5); }
	| T_LET T_ID '=' pattern	{ $$ = ast_item_let(@$, p, @2, $2, $4); }
	| named_rule		{ $$ = ast_item_rule(@$, p, $1); }
	| T_TRANSFORM T_ID T_C {
		$$ = ast_item_transform(@$, p, NULL, @2, $2, ast_code(@3, p, $3)); }
	| T_TRANSFORM T_ID T_ID T_C {
		$$ = ast_item_transform(@$, p, $2, @3, $3, ast_code(@4, p, $4)); }
	;

rule:
	left T_TO right		{ $$ = ast_rule(@$, p, $1, @3, $3); }
	| attr attrs left T_TO right {
		$$ = ast_rule_head(@$, ast_rule(@$, p, $3, @5, $5), @1, NULL, ast_attrs($1, $2)); }
	;

named_rule:
	T_RULE left T_TO right	{ $$ = ast_rule(@$, p, $2, @4, $4); }
	| T_RULE attr attrs left T_TO right {
		$$ = ast_rule_head(@$, ast_rule(@$, p, $4, @6, $6), @1, NULL, ast_attrs($2, $3)); }
	| T_RULE T_ID attrs left T_TO right {
		$$ = ast_rule_head(@$, ast_rule(@$, p, $4, @6, $6), @2, $2, $3); }
	;

attrs:
	%empty			{ $$ = NULL; }
	| attrs attr		{ $$ = ast_attrs($1, $2); }
	;

attr:
	T_ATTR			{ $$ = ast_attr(@$, p, $1, @1, NULL); }
	| T_ATTR_OF value	{ $$ = ast_attr(@$, p, $1, @2, $2); }
	;

value:
	T_ID
	| T_WORD
	| T_NUMBER		{ $$ = parse_copy(p, $1); }
	| T_STRING		{ $$ = parse_copy(p, $1); }
	;

left:
	T_BEGIN			{ $$ = ast_left(@$, p, LEFT_BEGIN, NULL); }
	| T_NOTHING		{ $$ = ast_left(@$, p, LEFT_NOTHING, NULL); }
	| steps			{ $$ = ast_left(@$, p, LEFT_STEPS, $1); }
	;

steps:
	step
	| steps ',' step	{ $$ = $1; LIST_APPEND(struct step, $$, $3); }
	;

step:
	guarded
	| guarded T_AS T_ID	{ $$ = ast_step_label(@$, $1, @3, $3); }
	;

guarded:
	alt			{ $$ = ast_step(@$, p, $1, NULL); }
	| alt guard		{ $$ = ast_step(@$, p, $1, $2); }
	;

alt:
	call
	| alt '|' call		{ $$ = $1; LIST_APPEND(struct call, $$, $3); }
	;

calls:
	call
	| calls ',' call	{ $$ = $1; LIST_APPEND(struct call, $$, $3); }
	;

call:
	T_ID '(' args ')'	{ $$ = ast_call(@$, p, @1, $1, $3); }
	| T_ID '(' ')'		{ $$ = ast_call(@$, p, @1, $1, NULL); }
	;

args:
	arg
	| args ',' arg		{ $$ = $1; LIST_APPEND(struct arg, $$, $3); }
	;

arg:
	T_ANY			{ $$ = ast_arg(@$, p, ARG_ANY); }
	| '-'			{ $$ = ast_arg(@$, p, ARG_NULL); }
	| names
	| T_NUMBER		{ $$ = ast_arg_number(@$, p, $1); }
	| T_STRING		{ $$ = ast_arg_pattern(@$, p, ARG_STRING, ast_string(@1, p, $1)); }
	| '~' pattern		{ $$ = ast_arg_pattern(@$, p, ARG_PATTERN, $2); }
	;

names:
	T_ID			{ $$ = ast_arg_name(@$, p, $1); }
	| names '|' T_ID	{ $$ = ast_arg_or(@$, p, $1, $3); }
	;

pattern:
	one_pattern
	| pattern '|' one_pattern	{ $$ = $1; LIST_APPEND(struct pattern, $$, $3); }
	;

one_pattern:
	T_STRING		{ $$ = ast_string(@$, p, $1); }
	| T_REGEX		{ $$ = ast_regex(@$, p, $1); }
	| T_ID			{ $$ = ast_pattern_name(@$, p, $1); }
	;

guard:
	T_C			{ $$ = ast_code(@$, p, $1); }
	;

right:
	T_NOTHING		{ $$ = NULL; }
	| T_NOTHING T_ARROW guard	{ $$ = ast_out_action(@$, ast_out(@$, p, NULL, false, NULL),
		@2, NULL, $3); }
	| outs
	;

outs:
	out
	| outs ',' out		{ $$ = $1; LIST_APPEND(struct out, $$, $3); }
	;

out:
	out_call
	| out_call '*'		{ $$ = ast_out_star(@$, $1); }
	| out_call T_ARROW guard	{ $$ = ast_out_action(@$, $1, @2, NULL, $3); }
	| out_call T_ARROW '(' T_ID ')' guard	{ $$ = ast_out_action(@$, $1, @4, $4, $6); }
	;

out_call:
	T_ID			{ $$ = ast_out(@$, p, ast_call(@$, p, @1, $1, NULL), false, NULL); }
	| T_ID guard		{ $$ = ast_out(@$, p, ast_call(@1, p, @1, $1, NULL), false, $2); }
	| call			{ $$ = ast_out(@$, p, $1, true, NULL); }
	| call guard		{ $$ = ast_out(@$, p, $1, true, $2); }
	;

%%

static void rules_yyerror(struct loc *loc, void *scanner, struct parse *p, const char *text)
{
	(void)scanner;
	parse_error(p, *loc, text);
}

#define EXPECTED_MAX	4

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct parse *p)
{
	yysymbol_kind_t expected[EXPECTED_MAX];
	int n = yypcontext_expected_tokens(context, expected, EXPECTED_MAX);
	const char *names[EXPECTED_MAX];

	(void)scanner;
	for (int i = 0; i < n && i < EXPECTED_MAX; i++)
		names[i] = yysymbol_name(expected[i]);
	parse_unexpected(p, *yypcontext_location(context),
		yypcontext_token(context) == YYSYMBOL_YYEMPTY ? NULL :
		yysymbol_name(yypcontext_token(context)), names, n);
	return 0;
}
