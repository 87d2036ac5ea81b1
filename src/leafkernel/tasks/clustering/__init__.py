"""Clustering with proximities."""

from leafkernel.tasks.clustering.hdbscan import ProximityHDBSCAN
from leafkernel.tasks.clustering.k_medoids import ProximityKMedoids
from leafkernel.tasks.clustering.spectral import ProximitySpectralClustering

__all__ = ["ProximityHDBSCAN", "ProximityKMedoids", "ProximitySpectralClustering"]
