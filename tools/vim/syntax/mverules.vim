" Vim syntax of mve's rules (grammar/GRAMMAR.md).
" Use: copy tools/vim into ~/.vim, or `set runtimepath+=.../tools/vim`.
if exists('b:current_syntax')
  finish
endif

" C in guards and actions is coloured as C.
syntax include @rulesC syntax/c.vim
unlet! b:current_syntax

syntax keyword rulesKeyword rule transform group let use as
syntax keyword rulesSpecial begin nothing
syntax match rulesInclude /#include/
syntax match rulesAttribute /@\(old\|new\|discard\|process\|leader\|follower\|within\|then\|first\|apart\)\>/
syntax match rulesArrow /=>\|->/
syntax match rulesAny /\<_\>/
syntax match rulesCall /\<\h\w*\ze(/
syntax match rulesNumber /\<-\?\(0[xX]\x\+\|\d\+\(ms\|s\)\?\)\>/
syntax region rulesString start=/"/ skip=/\\./ end=/"/ oneline contains=rulesEllipsis,rulesEscape
syntax match rulesEllipsis /…/ contained
syntax match rulesEscape /\\\(x\x\x\?\|.\)/ contained
syntax region rulesRegex start=/\(\~\s*\|=\s*\||\s*\)\@<=\/[^\/*]/ skip=/\\./ end=/\/i\?/ oneline
syntax region rulesComment start=/\/\// end=/$/ contains=@Spell
syntax region rulesComment start=/\/\*/ end=/\*\// contains=@Spell
syntax region rulesCode matchgroup=Delimiter start=/{/ end=/}/ contains=rulesCode,rulesName,@rulesC
syntax match rulesName /\$(\h\w*\(\.\h\w*\)\?)/ contained containedin=@rulesC,rulesCode
" The braces of a group hold calls.
syntax region rulesGroup matchgroup=Delimiter start=/\(\<group\s\+\h\w*\s*=\s*\)\@<={/ end=/}/
  \ contains=rulesCall,rulesAny,rulesString,rulesNumber,rulesComment

highlight default link rulesKeyword Keyword
highlight default link rulesSpecial Special
highlight default link rulesInclude Include
highlight default link rulesAttribute PreProc
highlight default link rulesArrow Operator
highlight default link rulesAny Comment
highlight default link rulesCall Function
highlight default link rulesNumber Number
highlight default link rulesString String
highlight default link rulesEllipsis SpecialChar
highlight default link rulesEscape SpecialChar
highlight default link rulesRegex String
highlight default link rulesComment Comment
highlight default link rulesName Identifier

let b:current_syntax = 'mverules'
