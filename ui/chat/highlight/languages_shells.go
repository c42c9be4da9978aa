// Tables of shells and of what has their lines in it.

package highlight

// Strings and comments of shells.
var (
	shellHash   = region{open: "#", kind: Comment, form: atWord}
	shellDouble = region{open: `"`, shut: `"`, kind: String, form: escapes | lines, hole: "$("}
	shellSingle = region{open: "'", shut: "'", kind: String, form: lines}
	shellCoded  = region{open: "$'", shut: "'", kind: String, form: escapes | lines}
)

const shellTypes = "alias bg bind break builtin cd command compgen complete continue declare dirs echo enable eval exec exit export false fg getopts hash history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source sudo test times trap true type typeset ulimit umask unalias unset wait env nohup"

var bash = Language{
	names:     "bash sh shell zsh ksh dash ash console terminal shell-session shellsession bash-session sh-session shellscript bashrc zshrc",
	shape:     shell,
	regions:   []region{shellHash, shellCoded, shellDouble, shellSingle},
	keywords:  "if then elif else fi for while until do done case esac in select time coproc",
	defines:   "function",
	types:     shellTypes,
	documents: "<<",
}

var fish = Language{
	names:    "fish fishshell",
	shape:    shell,
	regions:  []region{shellHash, shellDouble, {open: "'", shut: "'", kind: String, form: escapes | lines}},
	keywords: "if else for while switch case end in begin and or not break continue return",
	defines:  "function",
	types:    "abbr argparse bind builtin cd command contains count echo emit eval exec exit functions math read set set_color source status string test type",
}

var dockerfile = Language{
	names:     "dockerfile docker containerfile",
	shape:     shell,
	regions:   []region{{open: "#", kind: Comment, form: atWord}, {open: `"`, shut: `"`, kind: String, form: escapes, hole: "$("}, {open: "'", shut: "'", kind: String}},
	keywords:  "FROM RUN CMD LABEL MAINTAINER EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL AS as if then elif else fi for while do done in",
	types:     shellTypes,
	documents: "<<",
	traits:    instructions,
}

var makefiles = Language{
	names:    "makefile make mk gnumake bsdmake",
	shape:    makefile,
	regions:  []region{shellHash, {open: `"`, shut: `"`, kind: String, form: escapes}, {open: "'", shut: "'", kind: String}},
	keywords: "ifeq ifneq ifdef ifndef else endif include sinclude define endef override export unexport undefine vpath if then elif fi for while do done in",
	types:    "cd echo printf exit set test true false",
}

var powershell = Language{
	names: "powershell pwsh ps1 posh psm1",
	regions: []region{{open: "<#", shut: "#>", kind: Comment, form: lines}, hash, {open: `@"`, shut: `"@`, kind: String, form: lines},
		{open: "@'", shut: "'@", kind: String, form: lines}, {open: `"`, shut: `"`, kind: String, form: backtick | doubles | lines, hole: "$("},
		{open: "'", shut: "'", kind: String, form: doubles | lines}},
	keywords: "begin break catch continue data do dynamicparam else elseif end exit finally for foreach from if in param process return switch throw trap try until using while " +
		"-and -as -band -bnot -bor -contains -eq -ge -gt -in -is -isnot -join -le -like -lt -match -ne -not -notcontains -notin -notlike -notmatch -or -replace -split -xor",
	defines:  "function filter",
	declares: "class enum",
	part:     "-",
	dollar:   Variable,
	types:    "string int bool array hashtable datetime pscustomobject",
	traits:   calls | foldsCase | hyphenated,
}
