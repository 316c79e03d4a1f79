# Completion for bash: commands, losses, options, their values, and files. The losses and their parameters are asked of
# the tool itself (a few milliseconds), a line a loss, so that a new loss needs no edit here.

# The losses, a line each: the name, and after it the options that are its own, a gradient for each operand but the
# first, what only losses over rows have, and its parameters.
_onepass_losses() {
    local text name options weight
    text=$("${1/#\~/$HOME}" list --json 2>/dev/null) || return
    while read -r text; do
        [[ $text =~ \"name\":\ *\"([^\"]*)\" ]] || continue
        name=${BASH_REMATCH[1]} options='' weight=''
        text=${text#*"${BASH_REMATCH[0]}"}
        if [[ $text =~ \"operands\":\ *\[\"[^\"]*\"([^]]*)\] ]]; then
            options=${BASH_REMATCH[1]//[\",]/}
            [[ $options == *class_weight* ]] && weight=' --class-weight'
            [[ $text == *'"target": '*'class indices"'* ]] && options=
            [[ $text == *'"target": "a number a vector"'* ]] && options=${options% *}
            options=${options/ class_weight/}
            options=${options// / --grad-}
        fi
        if [[ $text == *'"over_rows": true'* ]]; then
            options+=' --axis --predicted'
            [[ $text == *'"log_sum_exp": true'* ]] && options+=' --lse'
        fi
        [[ $text == *'"of_vectors": true'* ]] && options+=' --axis'
        while [[ $text =~ \"name\":\ *\"([^\"]*)\" ]]; do
            options+=" --${BASH_REMATCH[1]}"
            text=${text#*"${BASH_REMATCH[0]}"}
        done
        printf '%s\n' "$name${options//_/-}$weight"
    done <<<"$text"
}

_onepass_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}

# Completes files that end in one of these, and folders.
_onepass_files() {
    local ending
    for ending; do
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X "!*.$ending" -- "$word")
    done
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$word")
    compopt -o filenames 2>/dev/null
}

_onepass() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local losses commands own
    COMPREPLY=()
    losses=$(_onepass_losses "$1")
    commands="$(cut -d ' ' -f 1 <<<"$losses") list info merge"
    if [ "$COMP_CWORD" -eq 1 ]; then
        _onepass_words "$commands help --help --version"
        return
    elif [ "$command" = help ]; then
        [ "$previous" = help ] && _onepass_words "$commands"
        return
    fi

    # "--option=value" comes as three words.
    if [ "$word" = = ]; then
        word=
    elif [ "$previous" = = ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    case $command/$previous in
        */--reduction) _onepass_words 'mean sum none batchmean' ;;
        */--device) _onepass_words 'auto cpu cuda' ;;
        */--state) _onepass_files onepass ;;
        */--part) ;; # such as 3/8
        */--grad | */--grad-* | */--none | */--lse | */--predicted) _onepass_files npy ;;
        */--weight | */--mask | */--class-weight) _onepass_files npy safetensors ;;
        */--threads) ;; # a number
        *)
            own=$(sed -n "s/^$command //p" <<<"$losses")
            _onepass_otherwise
            ;;
    esac
}

# Where no option waits for its value.
_onepass_otherwise() {
    if [[ " $own " == *" $previous "* && -n $own ]]; then
        return # a number
    elif [[ $word == -* ]]; then
        case $command in
            list | info) _onepass_words '--json --help' ;;
            merge) _onepass_words '--hex --json --help' ;;
            *)
                _onepass_words "--reduction --weight --mask --grad --none --part --state --bf16 --device --threads --hex
                    --json --help $own"
                ;;
        esac
    elif [[ $command == merge ]]; then
        _onepass_files onepass
    elif [[ $command != list && $command != info && $command != -* ]]; then
        [[ $word == : || $previous == : ]] || _onepass_files npy safetensors # a tensor's name follows the colon
    fi
}

complete -F _onepass onepass
