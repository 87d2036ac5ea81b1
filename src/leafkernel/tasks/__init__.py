"""Tasks based on proximities: predict, embed, cluster, find outliers, impute and explain.

The first argument of an estimator is a ``ForestProximity``, a forest, or the name of a weight
scheme. The first argument of a function is a fitted ``ForestProximity``. Tasks never build the full
matrix P, except ``ProximityKernel``.
"""

from leafkernel.tasks.attribution import AxilAttribution, LargestWeights
from leafkernel.tasks.clustering import (
    ProximityHDBSCAN,
    ProximityKMedoids,
    ProximitySpectralClustering,
)
from leafkernel.tasks.embedding import LeafEmbedding, LeafPCA
from leafkernel.tasks.explanation import (
    PredictionExplanation,
    explain_prediction,
)
from leafkernel.tasks.importance import local_importance
from leafkernel.tasks.imputation import ProximityImputer
from leafkernel.tasks.kernels import (
    ForestKernel,
    ProximityKernel,
    ProximityNeighborsTransformer,
)
from leafkernel.tasks.label_errors import LabelErrors, find_label_errors
from leafkernel.tasks.outliers import ProximityOutlierDetector, outlier_scores
from leafkernel.tasks.pair_explanation import PairExplanation, Partings, explain_pair
from leafkernel.tasks.prediction import ProximityClassifier, trust_scores
from leafkernel.tasks.prototypes import (
    ClassPrototypes,
    PrototypeClassifier,
    Prototypes,
    class_prototypes,
    medoids,
    select_prototypes,
)
from leafkernel.tasks.regression import Calibration, ProximityRegressor
from leafkernel.tasks.score_explanation import ScoreExplanation

__all__ = [
    "AxilAttribution",
    "Calibration",
    "ClassPrototypes",
    "ForestKernel",
    "LabelErrors",
    "LargestWeights",
    "LeafEmbedding",
    "LeafPCA",
    "PairExplanation",
    "Partings",
    "PredictionExplanation",
    "PrototypeClassifier",
    "Prototypes",
    "ProximityClassifier",
    "ProximityHDBSCAN",
    "ProximityImputer",
    "ProximityKMedoids",
    "ProximityKernel",
    "ProximityNeighborsTransformer",
    "ProximityOutlierDetector",
    "ProximityRegressor",
    "ProximitySpectralClustering",
    "ScoreExplanation",
    "class_prototypes",
    "explain_pair",
    "explain_prediction",
    "find_label_errors",
    "local_importance",
    "medoids",
    "outlier_scores",
    "select_prototypes",
    "trust_scores",
]
