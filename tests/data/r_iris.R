# Makes r_iris.npz: what R's randomForest gives on 60 rows of iris, which the tests reproduce.
#   Rscript r_iris.R OUT_DIR   writes one CSV file for each array; np.savez_compressed joins them.
library(randomForest)
out <- commandArgs(trailingOnly = TRUE)[1]
rows <- seq(1, 150, length.out = 60)
X <- iris[rows, 1:4]
y <- iris[rows, 5]
grow <- function(oob) {
  set.seed(7)
  randomForest(X, y, ntree = 40, keep.inbag = TRUE, proximity = TRUE, oob.prox = oob)
}
original <- grow(FALSE)
oob <- grow(TRUE)
stopifnot(identical(original$inbag, oob$inbag))
leaves <- attr(predict(original, X, nodes = TRUE), "nodes")
save <- function(x, name) {
  write.table(format(x, digits = 17), file.path(out, paste0(name, ".csv")), sep = ",",
              row.names = FALSE, col.names = FALSE, quote = FALSE)
}
save(leaves, "leaves")
save(original$inbag, "in_bag")
save(original$proximity, "proximity_original")
save(oob$proximity, "proximity_oob")
save(outlier(original), "outlier_original")
save(outlier(oob), "outlier_oob")
# classCenter breaks ties at random: the classes are in the order of their first rows.
save(classCenter(X, y, original$proximity), "class_center")
