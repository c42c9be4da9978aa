// Tables of markup and of data.

package highlight

var html = Language{names: "html htm xhtml vue svelte astro jinja jinja2 django handlebars hbs erb ejs", shape: markup}

var xml = Language{names: "xml svg xsd xsl xslt rss atom plist wsdl csproj pom xaml", shape: markup, traits: sections}

var css = Language{
	names:   "css",
	shape:   styles,
	regions: []region{remark, double, single},
	start:   "-",
	part:    "-",
}

var scss = Language{
	names:   "scss sass less stylus",
	shape:   styles,
	regions: []region{remark, {open: "//", kind: Comment, form: atWord}, double, single},
	start:   "-",
	part:    "-",
}

var json = Language{
	names:   "json jsonc json5 jsonl ndjson geojson webmanifest ipynb",
	regions: []region{slashes, remark, double, single},
	types:   "true false null NaN Infinity undefined",
	traits:  keys,
}

var yamls = Language{
	names: "yaml yml k8s kubernetes compose docker-compose openapi",
	shape: yaml,
	regions: []region{{open: "#", kind: Comment, form: atWord}, {open: `"`, shut: `"`, kind: String, form: escapes | lines},
		{open: "'", shut: "'", kind: String, form: doubles | lines}},
	types: "true false null True False Null TRUE FALSE NULL yes no Yes No on off On Off ~",
}

var toml = Language{
	names: "toml cargo",
	regions: []region{hash, triple, {open: "'''", shut: "'''", kind: String, form: lines}, double,
		{open: "'", shut: "'", kind: String}},
	part:   "-",
	types:  "true false inf nan",
	traits: assigns | sections,
}

var inis = Language{
	names: "ini cfg conf config properties env dotenv editorconfig gitconfig systemd service desktop",
	shape: ini,
	types: "true false yes no on off none True False Yes No On Off None",
}

var hcl = Language{
	names:    "hcl terraform tf tfvars nix nginx",
	regions:  []region{hash, slashes, remark, dollars, {open: "''", shut: "''", kind: String, form: lines, hole: "${"}},
	keywords: "resource data variable output provider module locals terraform for in if then else let rec with inherit import dynamic server location upstream http events",
	part:     "-",
	types:    "true false null string number bool list map set object tuple any on off",
	traits:   calls | assigns,
}

var diff = Language{names: "diff patch udiff", shape: patch}

var markdown = Language{names: "markdown md mdx rmarkdown", shape: prose}
