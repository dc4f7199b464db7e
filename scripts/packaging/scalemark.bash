# shellcheck shell=bash
# Bash completion of scalemark: subcommands, flags and their words, as the program's own help names them.
# Installed as share/bash-completion/completions/scalemark.

_scalemark_commands() { # PROGRAM
  "$1" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p'
}

_scalemark_flags() { # PROGRAM SUBCOMMAND
  "$1" "$2" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9_]+' | sort -u
}

_scalemark_models() { # PROGRAM
  "$1" list models 2>/dev/null | sed -n '2,$s/^\([a-z][a-z0-9_]*\) .*/\1/p'
}

# Words of a choice: of "update rule: sgd, momentum, lars (default: momentum)" in the help of its flag the list.
_scalemark_words() { # PROGRAM SUBCOMMAND FLAG
  "$1" "$2" --help 2>/dev/null | awk -v flag="$3" '
    /^ +--/ { on = $1 == flag; $1 = $2 = "" }
    on { text = text " " $0 }
    END {
      sub(/ *\(default.*/, "", text); sub(/.*: /, "", text); sub(/;.*/, "", text); gsub(/ +/, " ", text)
      if (text ~ /^[a-z0-9_]+(, [a-z0-9_]+)+$/) { gsub(/,/, "", text); print text }
    }'
}

_scalemark() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=""
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="$(_scalemark_commands "$program") --help --version"
  elif [[ $current == -* ]]; then
    words=$(_scalemark_flags "$program" "${COMP_WORDS[1]}")
  elif [[ $previous == --model ]]; then
    words=$(_scalemark_models "$program")
  elif [[ $previous == --* ]]; then
    words=$(_scalemark_words "$program" "${COMP_WORDS[1]}" "$previous")
  elif [[ ${COMP_WORDS[1]} == list ]]; then
    words="models configs"
  fi
  local IFS=$' \t\n'
  # shellcheck disable=SC2207  # words of the program, none of which has a blank
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${#COMPREPLY[@]} -gt 0 || $current == -* ]] || compopt -o default 2>/dev/null || true
}

complete -F _scalemark scalemark ./scalemark
