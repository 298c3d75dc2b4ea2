# Relative to no fusion, by model; `machine` is its name.
set grid ytics lt 1 lc rgb '#dddddd'
set border 3
set tics nomirror
set style data histograms
set style histogram clustered gap 1
set style fill solid noborder
set yrange [0:110]
set xtics rotate by -20
set key outside right top Left reverse autotitle columnheader
colours = '#888888 #92c5de #2166ac'
set multiplot layout 2,1 title 'Fusion on '.machine.': off, after anchors, everywhere'
do for [block in '$cycles $bytes'] {
  set ylabel '% of the '.block[2:]
  plot for [i=2:4] block using i:xtic(1) lc rgb word(colours, i - 1)
}
unset multiplot
