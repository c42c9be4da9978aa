# ossrun completion for fish: ~/.config/fish/completions/ossrun.fish
function __ossrun
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  if string match -q -- '-*' $word
    set -a words $word
  end
  $words --generate-bash-completion 2>/dev/null | string replace ':' \t
end
complete -c ossrun -n 'count (__ossrun) >/dev/null' -f -a '(__ossrun)'
