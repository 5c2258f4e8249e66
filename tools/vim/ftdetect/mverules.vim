" Others call their files .rules too (udev, snort): ours have an arrow.
autocmd BufNewFile,BufRead *.rules if search('=>', 'nw') | set filetype=mverules | endif
