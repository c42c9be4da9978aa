// The languages that are known, and what many of them share.

package highlight

// languages are the tables, which stand in files by their kind.
var languages = [...]*Language{
	&golang, &c, &cpp, &csharp, &java, &kotlin, &swift, &rust, &zig, &scala, &dart, &javascript, &typescript, &php, &protobuf,
	&python, &ruby, &perl, &lua, &r, &julia, &haskell, &elixir, &sql,
	&bash, &fish, &powershell, &dockerfile, &makefiles,
	&html, &xml, &css, &scss, &json, &yamls, &toml, &inis, &hcl, &diff, &markdown,
}

// Comments and strings of more than one language.
var (
	slashes   = region{open: "//", kind: Comment}
	hash      = region{open: "#", kind: Comment}
	remark    = region{open: "/*", shut: "*/", kind: Comment, form: lines}
	remarks   = region{open: "/*", shut: "*/", kind: Comment, form: lines | nests}
	double    = region{open: `"`, shut: `"`, kind: String, form: escapes}
	single    = region{open: "'", shut: "'", kind: String, form: escapes}
	triple    = region{open: `"""`, shut: `"""`, kind: String, form: escapes | lines}
	dollars   = region{open: `"`, shut: `"`, kind: String, form: escapes, hole: "${"}
	dollars3  = region{open: `"""`, shut: `"""`, kind: String, form: lines, hole: "${"}
	templates = region{open: "`", shut: "`", kind: String, form: escapes | lines, hole: "${"}
)
