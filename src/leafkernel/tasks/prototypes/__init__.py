"""Prototypes: a few training samples, or medians of them, that represent their class."""

from leafkernel.tasks.prototypes.classifier import PrototypeClassifier
from leafkernel.tasks.prototypes.middles import ClassPrototypes, class_prototypes
from leafkernel.tasks.prototypes.selection import Prototypes, medoids, select_prototypes

__all__ = [
    "ClassPrototypes",
    "PrototypeClassifier",
    "Prototypes",
    "class_prototypes",
    "medoids",
    "select_prototypes",
]
