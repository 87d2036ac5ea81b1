"""Clusters of samples that a forest takes to be alike."""

from leafkernel.tasks.clustering.hdbscan import ProximityHDBSCAN
from leafkernel.tasks.clustering.k_medoids import ProximityKMedoids
from leafkernel.tasks.clustering.spectral import ProximitySpectralClustering

__all__ = ["ProximityHDBSCAN", "ProximityKMedoids", "ProximitySpectralClustering"]
