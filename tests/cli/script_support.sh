# What scripts that run the program several times share; $program is set.
fail() { echo "$1"; exit 1; }
# run EXIT ARGUMENT...: standard output in $text, errors in $errors
run() {
  local expected=$1 code
  shift
  text=$("$program" "$@" 2>errors.txt)
  code=$?
  errors=$(cat errors.txt)
  [ "$code" -eq "$expected" ] || fail "loadline $*: exit $code"$'\n'"$text$errors"
}
says() { [[ "$text$errors" == *"$1"* ]] || fail "does not say '$1':"$'\n'"$text$errors"; }
