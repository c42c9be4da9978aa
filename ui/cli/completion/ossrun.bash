# ossrun completion for bash.
# Put  source <(ossrun completion bash)  into ~/.bashrc
_ossrun() {
  local word="${COMP_WORDS[COMP_CWORD]}" found
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  if [[ "$word" == -* ]]; then words+=("$word"); fi
  found=$("${words[@]}" --generate-bash-completion 2>/dev/null | sed 's/:.*//')
  mapfile -t COMPREPLY < <(compgen -W "$found" -- "$word")
}
complete -o bashdefault -o default -F _ossrun ossrun
