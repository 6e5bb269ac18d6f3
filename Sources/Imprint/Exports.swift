// One import is enough for an app: `import Imprint` brings photos, networks and weights files along.
@_exported public import ImprintFormats
@_exported public import ImprintImages
@_exported public import ImprintNetwork
