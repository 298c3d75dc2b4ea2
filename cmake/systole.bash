# Completion of systole for bash: commands, options and the names that options take, as the program's own
# help says them.
_systole() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local program=${COMP_WORDS[0]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null |
      awk '/^Subcommands:/ {on = 1; next} on && NF {print $1}') --help --version" -- "$word")
    return
  fi
  case $before in
    -m | --machine)
      mapfile -t COMPREPLY < <(compgen -W "$("$program" machine 2>/dev/null |
        awk 'NR > 1 && /^[^ ]/ {print $1}')" -- "$word")
      ;;
    --model)
      mapfile -t COMPREPLY < <(compgen -W "$("$program" model 2>/dev/null |
        awk 'NR > 1 && /^[^ ]/ {print $1}')" -- "$word")
      ;;
    *)
      mapfile -t COMPREPLY < <(compgen -W "$("$program" "$command" --help 2>/dev/null |
        grep -oE '^ {2}(-.,)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')" -- "$word")
      ;;
  esac
  # Files where nothing else fits.
  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -o filenames -F _systole systole
