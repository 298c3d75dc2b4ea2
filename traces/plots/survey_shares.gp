set title 'Where the time of BERT-Base goes, 512 tokens' font ',15'
set ylabel '% of the time'
set yrange [0:102]
set xtics rotate by -20
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set style data histograms
set style histogram rowstacked
set style fill solid noborder
set boxwidth 0.6
set key outside right top reverse Left invert autotitle columnheader
colours = '#2166ac #dfc27d #d95f0e #5aae61 #762a83 #b2182b #888888'
plot for [i=2:8] $shares using i:xtic(1) lc rgb word(colours, i - 1)
