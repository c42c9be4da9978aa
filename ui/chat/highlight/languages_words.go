// Tables of the languages that get by with fewer braces.

package highlight

var python = Language{
	names: "python py python3 py3 python2 pyi ipython gyp starlark bazel bzl",
	regions: []region{hash, {open: `"""`, shut: `"""`, kind: String, form: escapes | lines, hole: "{"},
		{open: "'''", shut: "'''", kind: String, form: escapes | lines, hole: "{"},
		{open: `"`, shut: `"`, kind: String, form: escapes, hole: "{"}, {open: "'", shut: "'", kind: String, form: escapes, hole: "{"}},
	keywords: "and as assert async await break case continue del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
	defines:  "def",
	declares: "class",
	prefixes: "r u b f t br rb fr rf tr rt",
	at:       Function,
	types: "True False None self cls Ellipsis NotImplemented __name__ __file__ __init__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip __import__ " +
		"ArithmeticError AssertionError AttributeError BaseException EOFError Exception FileExistsError FileNotFoundError ImportError IndexError IOError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError StopAsyncIteration StopIteration SyntaxError SystemExit TimeoutError TypeError UnicodeDecodeError UnicodeError ValueError ZeroDivisionError",
	traits: calls,
}

var ruby = Language{
	names: "ruby rb jruby rake gemfile podfile",
	regions: []region{{open: "=begin", shut: "=end", kind: Comment, form: lines | atStart}, hash,
		{open: `"`, shut: `"`, kind: String, form: escapes | lines, hole: "#{"}, {open: "'", shut: "'", kind: String, form: escapes | lines},
		{open: "`", shut: "`", kind: String, form: escapes | lines, hole: "#{"}},
	keywords:  "alias and begin BEGIN break case do else elsif end END ensure for if in next not or redo rescue retry return then undef unless until when while yield include extend require require_relative attr_accessor attr_reader attr_writer private protected public raise loop lambda proc",
	defines:   "def",
	declares:  "class module",
	part:      "?!",
	at:        Variable,
	dollar:    Variable,
	types:     "self super nil true false puts print p gets format __FILE__ __LINE__ __method__ defined?",
	documents: "<<",
	traits:    calls | capitals | regexps | percents | symbols,
}

var perl = Language{
	names: "perl pl pm raku",
	regions: []region{{open: "=pod", shut: "=cut", kind: Comment, form: lines | atStart}, {open: "=head", shut: "=cut", kind: Comment, form: lines | atStart},
		{open: "=over", shut: "=cut", kind: Comment, form: lines | atStart}, hash,
		{open: `"`, shut: `"`, kind: String, form: escapes | lines}, {open: "'", shut: "'", kind: String, form: escapes | lines},
		{open: "`", shut: "`", kind: String, form: escapes | lines}},
	keywords:  "and BEGIN cmp continue defer do else elsif END eq for foreach ge given goto gt if isa last le local lt my ne next no not or our redo require return state unless until use when while x xor try catch finally die warn",
	defines:   "sub method",
	declares:  "package class",
	types:     "bless chomp chop chr close defined delete each eof exists grep join keys lc length map open ord pop print printf push readline ref reverse say scalar shift sort splice split sprintf substr uc undef unlink unshift values wantarray __PACKAGE__ __END__ __DATA__",
	documents: "<<",
	traits:    calls | sigils | regexps | wordQuotes,
}

var lua = Language{
	names: "lua luau",
	regions: []region{{lead: "--[", fill: '=', open: "[", shut: "]", tail: "]", kind: Comment, form: lines}, {open: "--", kind: Comment},
		{lead: "[", fill: '=', open: "[", shut: "]", tail: "]", kind: String, form: lines}, double, single},
	keywords: "and break do else elseif end for goto if in local not or repeat return then until while",
	defines:  "function",
	types:    "true false nil self _G assert collectgarbage coroutine dofile error getmetatable io ipairs load math next os package pairs pcall print rawequal rawget rawset require select setmetatable string table tonumber tostring type utf8 xpcall",
	traits:   calls,
}

var r = Language{
	names: "r rlang splus",
	regions: []region{hash, {open: `r"`, shut: ")", tail: `("`, kind: String, form: lines | tagged},
		{open: `"`, shut: `"`, kind: String, form: escapes | lines}, {open: "'", shut: "'", kind: String, form: escapes | lines},
		{open: "`", shut: "`", kind: Text}},
	keywords: "break else for function if in next repeat return while library require",
	part:     ".",
	types:    "TRUE FALSE NULL NA NA_integer_ NA_real_ NA_character_ Inf NaN T F c list data.frame matrix vector factor print cat paste paste0",
	traits:   calls,
}

var julia = Language{
	names: "julia jl",
	regions: []region{{open: "#=", shut: "=#", kind: Comment, form: lines | nests}, hash,
		{open: `"""`, shut: `"""`, kind: String, form: escapes | lines, hole: "$("}, {open: `"`, shut: `"`, kind: String, form: escapes | lines, hole: "$("},
		{open: "`", shut: "`", kind: String, form: escapes}},
	keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for global if import in isa let local mutable outer primitive quote return try type using where while",
	defines:  "function macro",
	declares: "struct module",
	prefixes: "r b raw v s",
	part:     "!",
	at:       Function,
	types:    "true false nothing missing Inf NaN pi im",
	traits:   calls | capitals | characters | symbols,
}

var haskell = Language{
	names: "haskell hs elm purescript purs",
	regions: []region{{open: "{-#", shut: "#-}", kind: Key, form: lines}, {open: "{-", shut: "-}", kind: Comment, form: lines | nests},
		{open: "--", kind: Comment}, double},
	keywords: "as case default deriving do else family forall foreign hiding if import in infix infixl infixr instance let mdo module newtype of qualified rec then where",
	declares: "class data type",
	part:     "'",
	types:    "True False Nothing Just",
	traits:   capitals | characters,
}

var elixir = Language{
	names: "elixir ex exs erlang erl",
	regions: []region{hash, {open: `"""`, shut: `"""`, kind: String, form: escapes | lines, hole: "#{"},
		{open: `"`, shut: `"`, kind: String, form: escapes | lines, hole: "#{"}, {open: "'", shut: "'", kind: String, form: escapes | lines}},
	keywords: "after alias and case catch cond do else end fn for if import in not or quote raise receive require rescue super throw try unless unquote use when with",
	defines:  "def defp defmacro defmacrop defguard defdelegate",
	declares: "defmodule defprotocol defimpl",
	part:     "?!",
	at:       Key,
	types:    "true false nil",
	traits:   calls | capitals | symbols,
}

var sql = Language{
	names: "sql postgres postgresql psql pgsql plpgsql mysql mariadb sqlite sqlite3 tsql mssql plsql duckdb bigquery snowflake",
	regions: []region{{open: "--", kind: Comment}, remarks, {open: "'", shut: "'", kind: String, form: doubles | lines},
		{open: `"`, shut: `"`, kind: Text, form: doubles}, {open: "`", shut: "`", kind: Text}},
	keywords: "add all alter analyze and any as asc backup begin between by call cascade case cast check cluster collate column commit conflict constraint create cross current cursor database declare default deferrable delete desc describe distinct do drop each else elsif end escape except exec execute exists explain extension fetch filter first following for foreign from full function grant group grouping having if ignore ilike in index inner insert instead intersect into is isolation join key language last lateral left like limit lock loop materialized merge natural next no not nothing nulls of off offset on only or order outer over partition plan policy pragma preceding primary procedure range recursive references refresh rename replace restrict return returning returns revoke right role rollback row rows savepoint schema select sequence set show some start table tables temp temporary then to transaction trigger truncate type unbounded union unique update use using vacuum values view when where while window with within",
	types:    "bigint bigserial binary bit blob bool boolean bytea char character clob date datetime decimal double enum float geometry inet int int2 int4 int8 integer interval json jsonb long longtext mediumint money nchar number numeric nvarchar precision real serial smallint text time timestamp timestamptz tinyint uuid varbinary varchar varying xml year zone true false null unknown",
	at:       Variable,
	dollar:   Variable,
	traits:   calls | foldsCase,
}
