// parse.y - the grammar of lang/README.md, for Lemon. In: tokens of lex.re. Out: nodes of ast.def.
//
// An action is a call of one constructor. T_NL ends a statement: drive.c makes it from newlines and
// semicolons, never two in a row and none behind a `{`. An `error` stands for a whole statement,
// declaration or unit: drive.c reports a token that does not fit and calls sc_fall_back instead of
// giving it to the parser.

%include {
#ifndef NDEBUG
#define NDEBUG  // Lemon's tracing keeps a static variable
#endif
#include "lang/parser.h"

#include "parse.h"

#define LO(node) ((node)->span.lo)
#define NAMED(t) .name = (t).name, .name_span = (t).span
#define sc_lalr_ENGINEALWAYSONSTACK 1
}

%name sc_lalr
%token_prefix T_
%token_type {Token}
%extra_context {Parser *p}
%default_type {Node *}
%stack_size 2000
%stack_overflow { sc_too_deep(p, p->last.span); }

%token BAD SEMI.
%fallback NAME CLUSTER DYNAMIC EACH KEEP MULTICAST ONE PERSISTENT READ REVERSED TILE TOGETHER WORK.

// ---- units

file ::= . { p->ast->file = MAKE(p, FILE, 0); }
file ::= units(L) end. { p->ast->file = MAKE(p, FILE, 0, .a = L.first); }

%type units {List}
units(L) ::= unit(A). { L = sc_append((List){0}, A); }
units(L) ::= units(M) NL(S) unit(A). { L = sc_append_after(M, S, A); }

unit(A) ::= KERNEL(K) NAME(N) items(L). { A = MAKE(p, KERNEL, K.span.lo, NAMED(N), .a = L.first); }
unit(A) ::= SEQUENCE(K) NAME(N) steps(L). {
  A = MAKE(p, SEQUENCE, K.span.lo, NAMED(N), .a = L.first);
}
unit(A) ::= error. { A = MAKE(p, ERROR, p->last.span.lo); }

end ::= .
end ::= NL.

%type open {Token}
open(A) ::= LB(B). { sc_open_block(p); A = B; }

%type items {List}
%type item_list {List}
items(L) ::= open RB. { L = (List){0}; }
items(L) ::= open item_list(M) end RB. { L = M; }
item_list(L) ::= item(A). { L = sc_append((List){0}, A); }
item_list(L) ::= item_list(M) NL(S) item(A). { L = sc_append_after(M, S, A); }

%type steps {List}
%type step_list {List}
steps(L) ::= open RB. { L = (List){0}; }
steps(L) ::= open step_list(M) end RB. { L = M; }
step_list(L) ::= step(A). { L = sc_append((List){0}, A); }
step_list(L) ::= step_list(M) NL(S) step(A). { L = sc_append_after(M, S, A); }

// ---- what a sequence holds

step(A) ::= WORKSPACE(K) tensors(L) guard(C). {
  A = MAKE(p, WORKSPACE, K.span.lo, .a = L.first, .b = C);
}
step(A) ::= NAME(N) guard(C). { A = MAKE(p, LAUNCH, N.span.lo, NAMED(N), .a = C); }
step(A) ::= GIVEN(K) NAME(N). { A = MAKE(p, LAUNCH, K.span.lo, NAMED(N), .flags = F_GIVEN); }
step(A) ::= def(B). { A = B; }
step(A) ::= goal(B). { A = B; }
step(A) ::= error. { A = MAKE(p, ERROR, p->last.span.lo); }

// ---- what a kernel holds

item(A) ::= PARAM(K) params(L). { A = MAKE(p, PARAM, K.span.lo, .a = L.first); }
item(A) ::= IN|OUT|INOUT(K) tensors(L) guard(C). {
  A = MAKE(p, TENSOR, K.span.lo, .a = L.first, .b = C, .flags = sc_direction(K));
}
item(A) ::= goal(B). { A = B; }
item(A) ::= grid(B). { A = B; }
item(A) ::= turn(B). { A = B; }
item(A) ::= role(B). { A = B; }
item(A) ::= local(B). { A = B; }
item(A) ::= error. { A = MAKE(p, ERROR, p->last.span.lo); }

%type params {List}
params(L) ::= param(A). { L = sc_append((List){0}, A); }
params(L) ::= params(M) COMMA param(A). { L = sc_append(M, A); }
param(A) ::= NAME(N) SET expr(V). { A = MAKE(p, PARAMDEF, N.span.lo, NAMED(N), .a = V); }
param(A) ::= NAME(N) SET expr(V) IN domain(L). {
  A = MAKE(p, PARAMDEF, N.span.lo, NAMED(N), .a = V, .b = L.first);
}

%type domain {List}
%type choices {List}
domain(L) ::= LB choices(M) end RB. { L = M; }
choices(L) ::= values(A). { L = sc_append((List){0}, A); }
choices(L) ::= choices(M) COMMA values(A). { L = sc_append(M, A); }
values(A) ::= expr(E). { A = E; }
values(A) ::= expr(X) DOTDOT expr(Y) section(S). {
  A = MAKE(p, RANGE, LO(X), .a = X, .b = Y, .c = S);
}

// What a kernel or sequence must do, and on which inputs.
goal(A) ::= REQUIRE(K) expr(E). { A = MAKE(p, REQUIRE, K.span.lo, .a = E); }
goal(A) ::= WORK(K) expr(E). { A = MAKE(p, WORK, K.span.lo, .a = E); }
goal(A) ::= SPEC(K) equations(L). { A = MAKE(p, SPEC, K.span.lo, .a = L.first); }
goal(A) ::= CASE(K) NAME(N) LB RB. { A = MAKE(p, CASE, K.span.lo, NAMED(N)); }
goal(A) ::= CASE(K) NAME(N) LB facts(L) end RB. {
  A = MAKE(p, CASE, K.span.lo, NAMED(N), .a = L.first);
}

%type equations {List}
%type equation_list {List}
equations(L) ::= open RB. { L = (List){0}; }
equations(L) ::= open equation_list(M) end RB. { L = M; }
equation_list(L) ::= equation(A). { L = sc_append((List){0}, A); }
equation_list(L) ::= equation_list(M) NL(S) equation(A). { L = sc_append_after(M, S, A); }
equation(A) ::= place(D) SET expr(E). { A = MAKE(p, ASSIGN, LO(D), .a = D, .b = E, .op = AST_SET); }
equation(A) ::= name(N) COLON type(T) SET expr(E). { A = sc_typed_equation(p, N, T, E); }
equation(A) ::= error. { A = MAKE(p, ERROR, p->last.span.lo); }

%type facts {List}
facts(L) ::= fact(A). { L = sc_append((List){0}, A); }
facts(L) ::= facts(M) COMMA fact(A). { L = sc_append(M, A); }
fact(A) ::= NAME(N) SET expr(V). { A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = V); }
fact(A) ::= NAME(N) SET tuple(V). { A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = V); }
fact(A) ::= NAME(N) IN choice(V). { A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = V); }
tuple(A) ::= LK(K) exprs(L) RK. { A = MAKE(p, TUPLE, K.span.lo, .a = L.first); }
choice(A) ::= LB(K) exprs(L) end RB. { A = MAKE(p, SET, K.span.lo, .a = L.first); }

grid(A) ::= GRID(K) LP axes(X) RP taking(F) clusters(C). {
  A = MAKE(p, GRID, K.span.lo, .a = X.first, .b = C.first, .flags = F);
}
%type axes {List}
axes(L) ::= axis(A). { L = sc_append((List){0}, A); }
axes(L) ::= axes(M) COMMA axis(A). { L = sc_append(M, A); }
axis(A) ::= NAME(N) COLON expr(E) section(S). {
  A = MAKE(p, AXIS, N.span.lo, NAMED(N), .a = E, .b = S);
}
axis(A) ::= REVERSED(R) NAME(N) COLON expr(E) section(S). {
  A = MAKE(p, AXIS, R.span.lo, NAMED(N), .a = E, .b = S, .flags = F_REVERSED);
}
section(A) ::= . { A = NULL; }
section(A) ::= BY expr(E). { A = E; }
%type taking {u16}
taking(F) ::= . { F = 0; }
taking(F) ::= PERSISTENT. { F = F_PERSISTENT; }
taking(F) ::= DYNAMIC. { F = F_DYNAMIC; }
%type clusters {List}
%type cluster_list {List}
clusters(L) ::= . { L = (List){0}; }
clusters(L) ::= CLUSTER LP cluster_list(M) RP. { L = M; }
cluster_list(L) ::= cluster(A). { L = sc_append((List){0}, A); }
cluster_list(L) ::= cluster_list(M) COMMA cluster(A). { L = sc_append(M, A); }
cluster(A) ::= NAME(N) COLON expr(E). { A = MAKE(p, CLUSTER, N.span.lo, NAMED(N), .a = E); }

turn(A) ::= TURN(K) NAME(N) COLON names(L) guard(C). {
  A = MAKE(p, TURN, K.span.lo, NAMED(N), .a = L.first, .b = C);
}
turn(A) ::= TURN(K) NAME(N) LK key(Y) RK COLON names(L) guard(C). {
  A = MAKE(p, TURN, K.span.lo, NAMED(N), .a = L.first, .b = C, .c = Y);
}
key(A) ::= NAME(N) COLON expr(E). { A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = E); }

role(A) ::= ROLE(K) NAME(N) instance(W) COLON expr(C) threads(T) limits(R) guard(G) body(L). {
  A = MAKE(p, ROLE, K.span.lo, NAMED(N), .sym2 = W, .a = L.first, .b = C, .c = G, .d = R.regs,
           .op = T, .flags = R.flags);
}
%type instance {Sym}
instance(W) ::= . { W = NULL; }
instance(W) ::= LK NAME(N) RK. { W = N.name; }
%type threads {u8}
threads(T) ::= WARP|WARPS. { T = AST_WARP; }
threads(T) ::= WARPGROUP|WARPGROUPS. { T = AST_WARPGROUP; }
%type limits {Limits}
limits(R) ::= . { R = (Limits){0}; }
limits(R) ::= COMMA one_each(F). { R = (Limits){.flags = F}; }
limits(R) ::= COMMA regs(E). { R = (Limits){.regs = E}; }
limits(R) ::= COMMA one_each(F) COMMA regs(E). { R = (Limits){E, F}; }
%type one_each {u16}
one_each(F) ::= ONE TILE EACH. { F = F_ONE_TILE; }
regs(A) ::= expr(E) REGS. { A = E; }

// Whether there is the tensor, ring, turn, role or launch; of an assignment, where it is made.
guard(A) ::= . { A = NULL; }
guard(A) ::= IF expr(E). { A = E; }

// ---- groups: names that share a type

%type names {List}
names(L) ::= name(A). { L = sc_append((List){0}, A); }
names(L) ::= names(M) COMMA name(A). { L = sc_append(M, A); }
name(A) ::= NAME(N). { A = MAKE(p, NAME, N.span.lo, NAMED(N)); }

type(A) ::= NAME(N). { A = MAKE(p, TYPE, N.span.lo, NAMED(N)); }
type(A) ::= NAME(N) LK exprs(L) RK. { A = MAKE(p, TYPE, N.span.lo, NAMED(N), .a = L.first); }

%type tensors {List}
tensors(L) ::= tensor(A). { L = sc_append((List){0}, A); }
tensors(L) ::= tensors(M) COMMA tensor(A). { L = sc_append(M, A); }
tensor(A) ::= names(N) COLON type(T) initial(E) elements(R) rising(F). {
  A = MAKE(p, GROUP, LO(N.first), .a = N.first, .b = T, .c = E, .d = R, .flags = F);
}
elements(A) ::= . { A = NULL; }
elements(A) ::= IN expr(X) DOTDOT expr(Y). { A = MAKE(p, RANGE, LO(X), .a = X, .b = Y); }
%type rising {u16}
rising(F) ::= . { F = 0; }
rising(F) ::= RISING. { F = F_RISING; }
initial(A) ::= . { A = NULL; }
initial(A) ::= SET expr(E). { A = E; }

%type tiles {List}
tiles(L) ::= tile(A). { L = sc_append((List){0}, A); }
tiles(L) ::= tiles(M) COMMA tile(A). { L = sc_append(M, A); }
tile(A) ::= names(N) COLON type(T) initial(E). {
  A = MAKE(p, GROUP, LO(N.first), .a = N.first, .b = T, .c = E);
}
tile(A) ::= names(N) COLON type(T) initial(E) PARTIAL. {
  A = MAKE(p, GROUP, LO(N.first), .a = N.first, .b = T, .c = E, .flags = F_PARTIAL);
}

%type rings {List}
rings(L) ::= ring(A). { L = sc_append((List){0}, A); }
rings(L) ::= rings(M) COMMA ring(A). { L = sc_append(M, A); }
ring(A) ::= names(N) COLON stage(T) stages(S). {
  A = MAKE(p, GROUP, LO(N.first), .a = N.first, .b = T, .d = S);
}
stage(A) ::= type(T). { A = T; }
stage(A) ::= LB(K) parts(L) end RB. { A = MAKE(p, RECORD, K.span.lo, .a = L.first); }
stages(A) ::= . { A = NULL; }
stages(A) ::= STAR expr(E). { A = E; }
%type parts {List}
parts(L) ::= part(A). { L = sc_append((List){0}, A); }
parts(L) ::= parts(M) COMMA part(A). { L = sc_append(M, A); }
part(A) ::= names(N) COLON type(T). { A = MAKE(p, GROUP, LO(N.first), .a = N.first, .b = T); }

// ---- what may stand in a kernel and in its roles

local(A) ::= RING(K) rings(L) guard(C). { A = MAKE(p, RING, K.span.lo, .a = L.first, .b = C); }
local(A) ::= LET(K) binds(L). { A = MAKE(p, LET, K.span.lo, .a = L.first); }
local(A) ::= def(B). { A = B; }
local(A) ::= DEF(K) NAME(N) LP formals(L) RP block(B). {
  A = MAKE(p, DEF, K.span.lo, NAMED(N), .a = L.first, .b = B);
}
def(A) ::= DEF(K) NAME(N) LP formals(L) RP SET expr(E). {
  A = MAKE(p, DEF, K.span.lo, NAMED(N), .a = L.first, .b = E);
}
%type formals {List}
formals(L) ::= . { L = (List){0}; }
formals(L) ::= names(M). { L = M; }

%type binds {List}
binds(L) ::= bind(A). { L = sc_append((List){0}, A); }
binds(L) ::= binds(M) COMMA bind(A). { L = sc_append(M, A); }
bind(A) ::= NAME(N) SET expr(V). { A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = V); }
bind(A) ::= NAME(N) LK names(I) RK SET expr(V). {
  A = MAKE(p, BIND, N.span.lo, NAMED(N), .a = V, .b = I.first);
}

// ---- statements

block(A) ::= open(O) RB. { A = MAKE(p, BLOCK, O.span.lo); }
block(A) ::= open(O) statements(L) end RB. { A = MAKE(p, BLOCK, O.span.lo, .a = L.first); }
%type body {List}
body(L) ::= open RB. { L = (List){0}; }
body(L) ::= open statements(M) end RB. { L = M; }
%type statements {List}
statements(L) ::= statement(A). { L = sc_append((List){0}, A); }
statements(L) ::= statements(M) NL(S) statement(A). { L = sc_append_after(M, S, A); }

statement(A) ::= local(B). { A = B; }
statement(A) ::= REG(K) tiles(L). { A = MAKE(p, REG, K.span.lo, .a = L.first); }
statement(A) ::= place(D) ARROW place(S) multicast(F). {
  A = MAKE(p, COPY, LO(D), .a = D, .b = S, .flags = F);
}
statement(A) ::= ACQUIRE(K) holds(L). { A = MAKE(p, ACQUIRE, K.span.lo, .a = L.first); }
statement(A) ::= COMMIT(K) names(L). { A = MAKE(p, COMMIT, K.span.lo, .a = L.first); }
statement(A) ::= WAIT(K) names(L) source(F) keep(N). {
  A = MAKE(p, WAIT, K.span.lo, .a = L.first, .b = N, .flags = F);
}
statement(A) ::= RELEASE(K) holds(L). { A = MAKE(p, RELEASE, K.span.lo, .a = L.first); }
statement(A) ::= assign(B). { A = B; }
statement(A) ::= ASYNC(K) assign(B). { A = sc_async(B, K); }
statement(A) ::= NAME(N) LP args(L) RP. { A = MAKE(p, CALLST, N.span.lo, NAMED(N), .a = L.first); }
statement(A) ::= VOTE(K) together(F) ANY LP expr(C) RP block(B). {
  A = MAKE(p, VOTE, K.span.lo, .a = C, .b = B, .flags = F);
}
statement(A) ::= FOR(K) NAME(N) IN order(F) expr(X) DOTDOT expr(Y) block(B). {
  A = MAKE(p, FOR, K.span.lo, NAMED(N), .a = X, .b = Y, .d = B, .flags = F);
}
statement(A) ::= branch(B). { A = B; }
statement(A) ::= error. { A = MAKE(p, ERROR, p->last.span.lo); }

assign(A) ::= place(D) SET|SETADD(O) expr(E) guard(C). {
  A = MAKE(p, ASSIGN, LO(D), .a = D, .b = E, .c = C, .op = sc_token_op(O));
}
branch(A) ::= IF(K) expr(C) block(B). { A = MAKE(p, IF, K.span.lo, .a = C, .b = B); }
branch(A) ::= IF(K) expr(C) block(B) ELSE block(E). {
  A = MAKE(p, IF, K.span.lo, .a = C, .b = B, .c = E);
}
branch(A) ::= IF(K) expr(C) block(B) ELSE branch(E). {
  A = MAKE(p, IF, K.span.lo, .a = C, .b = B, .c = E);
}

%type order {u16}
order(F) ::= . { F = 0; }
order(F) ::= REVERSED. { F = F_REVERSED; }
%type multicast {u16}
multicast(F) ::= . { F = 0; }
multicast(F) ::= MULTICAST. { F = F_MULTICAST; }
%type together {u16}
together(F) ::= . { F = 0; }
together(F) ::= TOGETHER. { F = F_TOGETHER; }
%type source {u16}
source(F) ::= . { F = 0; }
source(F) ::= READ. { F = F_READ; }
keep(A) ::= . { A = NULL; }
keep(A) ::= KEEP expr(E). { A = E; }

%type holds {List}
holds(L) ::= hold(A). { L = sc_append((List){0}, A); }
holds(L) ::= holds(M) COMMA hold(A). { L = sc_append(M, A); }
hold(A) ::= name(N). { A = N; }
hold(A) ::= name(N) LK exprs(L) RK. { A = MAKE(p, INDEX, LO(N), .a = N, .b = L.first); }

// ---- places: tiles, stages, tensors and their elements

path(A) ::= name(N). { A = N; }
path(A) ::= name(N) DOT NAME(F). { A = MAKE(p, FIELD, LO(N), NAMED(F), .a = N); }
place(A) ::= path(B). { A = B; }
place(A) ::= path(B) LK positions(L) RK. { A = MAKE(p, INDEX, LO(B), .a = B, .b = L.first); }
%type positions {List}
positions(L) ::= position(A). { L = sc_append((List){0}, A); }
positions(L) ::= positions(M) COMMA position(A). { L = sc_append(M, A); }
position(A) ::= expr(E). { A = E; }
position(A) ::= expr(E) DOTDOT. { A = MAKE(p, SLICE, LO(E), .a = E); }

// ---- expressions, weakest first

%type args {List}
args(L) ::= . { L = (List){0}; }
args(L) ::= exprs(M). { L = M; }
%type exprs {List}
exprs(L) ::= expr(A). { L = sc_append((List){0}, A); }
exprs(L) ::= exprs(M) COMMA expr(A). { L = sc_append(M, A); }

expr(A) ::= either(E). { A = E; }
expr(A) ::= either(C) QUESTION expr(X) COLON expr(Y). {
  A = MAKE(p, SELECT, LO(C), .a = C, .b = X, .c = Y);
}
either(A) ::= both(E). { A = E; }
either(A) ::= either(X) OR(O) both(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
both(A) ::= denial(E). { A = E; }
both(A) ::= both(X) AND(O) denial(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
denial(A) ::= comparison(E). { A = E; }
denial(A) ::= NOT(O) denial(E). { A = MAKE(p, UNARY, O.span.lo, .a = E, .op = AST_NOT); }
comparison(A) ::= total(E). { A = E; }
comparison(A) ::= total(X) LT|LE|GT|GE|EQ|NE(O) total(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
total(A) ::= product(E). { A = E; }
total(A) ::= total(X) PLUS|MINUS(O) product(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}

// A reduction takes the product on its right, so that nothing follows it in a product. Its body
// never starts with a minus: `max(j) - x` is read as a difference, as `max(a, b) - x` has to be.
product(A) ::= plain(E). { A = E; }
product(A) ::= negative(E). { A = E; }
product(A) ::= tail(E). { A = E; }
product(A) ::= MINUS(O) reduced(E). { A = MAKE(p, UNARY, O.span.lo, .a = E, .op = AST_NEG); }
product(A) ::= negative(X) STAR|SLASH|PERCENT|AT(O) reduced(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
tail(A) ::= reduction(E). { A = E; }
tail(A) ::= plain(X) STAR|SLASH|PERCENT|AT(O) reduced(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
reduced(A) ::= reduction(E). { A = E; }
reduced(A) ::= MINUS(O) reduced(E). { A = MAKE(p, UNARY, O.span.lo, .a = E, .op = AST_NEG); }
reduction(A) ::= SUM|MAX|MIN(O) LP exprs(L) RP plain(E). { A = sc_reduce(p, O, L, E); }
reduction(A) ::= SUM|MAX|MIN(O) LP exprs(L) RP tail(E). { A = sc_reduce(p, O, L, E); }
plain(A) ::= atom(E). { A = E; }
plain(A) ::= plain(X) STAR|SLASH|PERCENT|AT(O) factor(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
negative(A) ::= MINUS(O) factor(E). { A = MAKE(p, UNARY, O.span.lo, .a = E, .op = AST_NEG); }
negative(A) ::= negative(X) STAR|SLASH|PERCENT|AT(O) factor(Y). {
  A = MAKE(p, BINARY, LO(X), .a = X, .b = Y, .op = sc_token_op(O));
}
factor(A) ::= atom(E). { A = E; }
factor(A) ::= MINUS(O) factor(E). { A = MAKE(p, UNARY, O.span.lo, .a = E, .op = AST_NEG); }

atom(A) ::= place(E). { A = E; }
atom(A) ::= NAME(N) LP args(L) RP. { A = MAKE(p, APPLY, N.span.lo, NAMED(N), .a = L.first); }
atom(A) ::= SUM|MAX|MIN(O) LP exprs(L) RP. { A = sc_minmax(p, O, L); }
atom(A) ::= LP(O) expr(E) RP. { A = sc_paren(p, O, E); }
atom(A) ::= INT(N). { A = MAKE(p, INT, N.span.lo, .num.i = N.num.i); }
atom(A) ::= REAL(N). { A = MAKE(p, REAL, N.span.lo, .name = N.name, .num.f = N.num.f); }
atom(A) ::= TRUE|FALSE(N). { A = MAKE(p, BOOL, N.span.lo, .num.i = N.kind == T_TRUE); }

%code {
const size_t sc_lalr_size = sizeof(yyParser);

// Would the grammar take this token now? Runs the parser's tables on states alone: the real stack
// stays as it is, and `above` holds the states that reductions would put on top of it. Only empty
// rules make `above` grow, and no state allows more than a handful of them in a row.
bool sc_accepts(const Parser *p, int kind) {
  const yyParser *y = p->lalr;
  const yyStackEntry *below = y->yytos;
  YYACTIONTYPE above[16];
  int n = 0;
  for (;;) {
    YYACTIONTYPE state = n ? above[n - 1] : below->stateno;
    YYACTIONTYPE act = yy_find_shift_action((YYCODETYPE)kind, state);
    if (act < YY_MIN_REDUCE) return act != YY_ERROR_ACTION && act != YY_NO_ACTION;
    int rule = act - YY_MIN_REDUCE;
    for (int pop = -yyRuleInfoNRhs[rule]; pop; pop--) {
      if (n) n--;
      else below--;
    }
    if (n == (int)COUNT(above)) return false;
    state = n ? above[n - 1] : below->stateno;
    above[n++] = yy_find_reduce_action(state, yyRuleInfoLhs[rule]);
  }
}

// Makes all reductions that do not depend on the next token. After them it is known whether a {
// opens a block.
void sc_settle(Parser *p) {
  yyParser *y = p->lalr;
  while (y->yytos->stateno > YY_MAX_SHIFT) {
    yy_reduce(y, y->yytos->stateno - YY_MIN_REDUCE, YYNOCODE, p->last, p);
  }
}

// Drops what has been read of the innermost statement, declaration or unit, and puts an `error` in
// its place.
void sc_fall_back(Parser *p) {
  yyParser *y = p->lalr;
  YYACTIONTYPE act;
  sc_settle(p);
  while ((act = yy_find_reduce_action(y->yytos->stateno, YYERRORSYMBOL)) > YY_MAX_SHIFTREDUCE) {
    yy_pop_parser_stack(y);
  }
  yy_shift(y, act, YYERRORSYMBOL, p->last);
}
}
