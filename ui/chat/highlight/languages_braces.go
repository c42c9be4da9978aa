// Tables of the languages with braces.

package highlight

var golang = Language{
	names:    "go golang",
	regions:  []region{slashes, remark, double, {open: "`", shut: "`", kind: String, form: lines}, single},
	keywords: "break case chan const continue default defer else fallthrough for go goto if import interface map package range return select struct switch var",
	defines:  "func",
	declares: "type",
	types: "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr " +
		"append cap clear close complex copy delete imag len make max min new panic print println real recover true false nil iota",
	traits: calls,
}

var c = Language{
	names:    "c h objective-c objectivec objc",
	regions:  []region{slashes, remark, double, single},
	keywords: "auto break case const continue default do else extern for goto if inline register restrict return sizeof static switch typedef volatile while _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local alignas alignof constexpr static_assert thread_local typeof",
	declares: "struct union enum",
	prefixes: "l u u8",
	at:       Keyword,
	types: "void char short int long float double signed unsigned bool _Bool _Complex size_t ssize_t ptrdiff_t intptr_t uintptr_t off_t time_t FILE va_list wchar_t " +
		"int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t NULL nullptr true false stdin stdout stderr errno",
	traits: calls | preprocessor | ticks,
}

var cpp = Language{
	names:   "c++ cpp cc cxx hpp hh hxx cuda cu hip metal arduino ino",
	regions: []region{slashes, remark, {open: `R"`, shut: ")", tail: `("`, kind: String, form: lines | tagged}, double, single},
	keywords: "alignas alignof asm auto break case catch co_await co_return co_yield concept const const_cast consteval constexpr constinit continue decltype default delete do dynamic_cast else explicit export extern final for friend goto if import inline module mutable namespace new noexcept operator override private protected public register reinterpret_cast requires return sizeof static static_assert static_cast switch template this thread_local throw try typedef typeid typename using virtual volatile while and or not xor " +
		"__global__ __device__ __host__ __shared__ __constant__ __restrict__",
	declares: "class struct union enum",
	prefixes: "l u u8",
	types: "void char char8_t char16_t char32_t wchar_t short int long float double signed unsigned bool size_t ssize_t ptrdiff_t intptr_t uintptr_t " +
		"int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t true false nullptr NULL std string string_view vector map unordered_map set unordered_set pair tuple array optional variant function unique_ptr shared_ptr weak_ptr cout cin cerr endl half __half __nv_bfloat16 dim3",
	traits: calls | preprocessor | ticks,
}

var csharp = Language{
	names: "c# csharp cs",
	regions: []region{slashes, remark, triple,
		{lead: `$@"`, shut: `"`, kind: String, form: doubles | lines, hole: "{"},
		{lead: `$"`, shut: `"`, kind: String, form: escapes, hole: "{"},
		{lead: `@"`, shut: `"`, kind: String, form: doubles | lines}, double, single},
	keywords: "abstract as async await base break case catch checked const continue default delegate do else event explicit extern finally fixed for foreach get goto if implicit in init internal is lock namespace new operator out override params partial private protected public readonly ref required return sealed set sizeof stackalloc static switch this throw try typeof unchecked unsafe using value var virtual volatile when where while with yield",
	declares: "class struct interface enum record",
	types:    "bool byte char decimal double dynamic float int long nint nuint object sbyte short string uint ulong ushort void true false null",
	traits:   calls | preprocessor,
}

var java = Language{
	names:    "java groovy gradle",
	regions:  []region{slashes, remark, triple, double, single},
	keywords: "abstract assert break case catch const continue default def do else extends final finally for goto if implements import in instanceof native new non-sealed package permits private protected public return sealed static strictfp super switch synchronized this throw throws transient try var void volatile when while yield",
	declares: "class interface enum record",
	at:       Function,
	start:    "$",
	types:    "boolean byte char double float int long short true false null",
	traits:   calls | capitals,
}

var kotlin = Language{
	names:    "kotlin kt kts",
	regions:  []region{slashes, remarks, dollars3, dollars, single},
	keywords: "abstract actual annotation as break by catch companion const constructor continue crossinline data do else enum expect external final finally for get if import in infix init inline inner internal is lateinit noinline open operator out override package private protected public reified return sealed set super suspend tailrec this throw try typealias typeof val value var vararg when where while",
	defines:  "fun",
	declares: "class interface object",
	at:       Function,
	types:    "true false null it",
	traits:   calls | capitals,
}

var swift = Language{
	names: "swift",
	regions: []region{slashes, remarks,
		{lead: "#", fill: '#', open: `"""`, shut: `"""#`, kind: String, form: lines},
		{lead: "#", fill: '#', open: `"`, shut: `"#`, kind: String},
		{open: `"""`, shut: `"""`, kind: String, form: escapes | lines, hole: `\(`},
		{open: `"`, shut: `"`, kind: String, form: escapes, hole: `\(`}},
	keywords: "as associatedtype async await break case catch consuming continue convenience default defer deinit didSet do dynamic else extension fallthrough fileprivate final for get guard if import in indirect infix init inout internal is isolated lazy let mutating nonisolated nonmutating open operator optional override postfix precedencegroup prefix private public repeat required rethrows return set some static subscript super switch throw throws try typealias unowned var weak where while willSet any",
	defines:  "func macro",
	declares: "class struct enum protocol actor",
	at:       Function,
	dollar:   Variable,
	types:    "self Self true false nil",
	traits:   calls | capitals | preprocessor,
}

var rust = Language{
	names: "rust rs",
	regions: []region{slashes, remarks,
		{open: "#[", shut: "]", kind: Key}, {open: "#![", shut: "]", kind: Key},
		{lead: "r", fill: '#', open: `"`, shut: `"`, kind: String, form: lines},
		{lead: "br", fill: '#', open: `"`, shut: `"`, kind: String, form: lines},
		{open: `"`, shut: `"`, kind: String, form: escapes | lines}},
	keywords: "as async await become break const continue crate dyn else extern for gen if impl in let loop match mod move mut pub ref return static super try unsafe use where while yield macro_rules",
	defines:  "fn",
	declares: "struct enum trait union type",
	prefixes: "b c",
	types:    "bool char f16 f32 f64 f128 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize self Self true false",
	traits:   calls | capitals | macros | characters,
}

var zig = Language{
	names:    "zig",
	regions:  []region{slashes, {open: `\\`, kind: String}, double, single},
	keywords: "addrspace align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern for if inline linksection noalias noinline nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
	defines:  "fn",
	at:       Type,
	types:    "anyerror anyopaque bool comptime_float comptime_int f16 f32 f64 f80 f128 i8 i16 i32 i64 i128 isize noreturn type u1 u2 u3 u4 u8 u16 u32 u64 u128 usize void c_int c_uint c_char c_long true false null undefined",
	traits:   calls,
}

var scala = Language{
	names:    "scala sc sbt",
	regions:  []region{slashes, remarks, dollars3, dollars},
	keywords: "abstract case catch derives do else end export extends extension final finally for forSome given if implicit import infix inline lazy match new open opaque override package private protected return sealed super then this throw transparent try using val var while with yield",
	defines:  "def",
	declares: "class object trait enum type",
	prefixes: "s f raw",
	at:       Function,
	types:    "true false null",
	traits:   calls | capitals | characters,
}

var dart = Language{
	names: "dart",
	regions: []region{slashes, remarks, dollars3, {open: "'''", shut: "'''", kind: String, form: escapes | lines, hole: "${"}, dollars,
		{open: "'", shut: "'", kind: String, form: escapes, hole: "${"}},
	keywords: "abstract as assert async await base break case catch const continue covariant default deferred do else export extends extension external factory final finally for get hide if implements import in interface is late library mixin new on operator part required rethrow return sealed set show static super switch sync this throw try typedef var when while with yield",
	declares: "class enum",
	prefixes: "r",
	at:       Function,
	types:    "bool double dynamic int num void true false null",
	traits:   calls | capitals,
}

var javascript = Language{
	names:    "javascript js jsx mjs cjs node",
	regions:  []region{slashes, remark, double, single, templates},
	keywords: "as async await break case catch const continue debugger default delete do else export extends finally for from get if import in instanceof let new of return set static super switch this throw try typeof var void while with yield",
	defines:  "function",
	declares: "class",
	start:    "$",
	at:       Function,
	types:    "true false null undefined NaN Infinity Array BigInt Boolean Date Error JSON Map Math Number Object Promise Proxy Reflect RegExp Set String Symbol WeakMap WeakSet console document globalThis module process require window",
	traits:   calls | regexps | tags,
}

var typescript = Language{
	names:    "typescript ts tsx mts cts",
	regions:  []region{slashes, remark, double, single, templates},
	keywords: "abstract accessor as asserts async await break case catch const constructor continue debugger declare default delete do else export extends finally for from get if implements import in infer instanceof is keyof let new of out override private protected public readonly return satisfies set static super switch this throw try type typeof unique using var void while with yield",
	defines:  "function",
	declares: "class interface enum namespace",
	start:    "$",
	at:       Function,
	types:    "any bigint boolean never number object string symbol unknown true false null undefined NaN Infinity Array BigInt Boolean Date Error JSON Map Math Number Object Partial Pick Omit Promise Proxy ReadonlyArray Record Reflect RegExp Required Set String Symbol WeakMap WeakSet console document globalThis module process require window",
	traits:   calls | regexps | tags,
}

// phpCode is PHP between its marks, php a page with them.
var phpCode = Language{
	regions: []region{{open: "#[", shut: "]", kind: Key}, hash, slashes, remark,
		{open: `"`, shut: `"`, kind: String, form: escapes | lines, hole: "{$"}, {open: "'", shut: "'", kind: String, form: escapes | lines}},
	keywords:  "abstract and as break callable case catch clone const continue declare default do echo else elseif empty enddeclare endfor endforeach endif endswitch endwhile exit extends final finally fn for foreach global goto if implements include include_once instanceof insteadof isset list match namespace new or print private protected public readonly require require_once return static switch throw try unset use var while xor yield",
	defines:   "function",
	declares:  "class interface trait enum",
	types:     "array bool false float int iterable mixed never null object parent self string true void",
	documents: "<<<",
	traits:    calls | sigils | foldsCase | isPHP,
}

var php = Language{names: "php phtml", shape: markup, traits: inPHP}

var protobuf = Language{
	names:    "protobuf proto graphql gql thrift",
	regions:  []region{slashes, hash, remark, triple, double, single},
	keywords: "syntax package import option optional required repeated oneof extend extensions reserved returns stream to public weak query mutation subscription fragment on schema directive implements input scalar",
	defines:  "rpc",
	declares: "message enum service type interface union struct",
	at:       Function,
	dollar:   Variable,
	types:    "bool bytes double fixed32 fixed64 float int32 int64 sfixed32 sfixed64 sint32 sint64 string uint32 uint64 map true false null Int Float String Boolean ID",
	traits:   calls,
}
