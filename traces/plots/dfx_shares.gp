set title 'Where the time of a pass goes' font ',15'
set ylabel 'ms a pass'
set yrange [0:*]
set xtics rotate by -20
set grid ytics lt 1 lc rgb '#dddddd'
set border 3
set tics nomirror
set style data histograms
set style histogram rowstacked
set style fill solid noborder
set boxwidth 0.6
set key outside right top reverse Left invert autotitle columnheader
colours = '#888888 #5aae61 #2166ac #92c5de #762a83 #b2182b #dfc27d'
plot for [i=2:8] $passes using i:xtic(1) lc rgb word(colours, i - 1)
