#compdef ossrun
# ossrun completion for zsh: put  source <(ossrun completion zsh)  into ~/.zshrc after compinit
_ossrun() {
  local -a found words_before
  words_before=("${(@)words[1,CURRENT-1]}")
  if [[ "${words[CURRENT]}" == -* ]]; then words_before+=("${words[CURRENT]}"); fi
  found=("${(@f)$("${words_before[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then _describe 'ossrun' found; else _files; fi
}
compdef _ossrun ossrun
