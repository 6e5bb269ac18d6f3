package import ImprintImages
package import ImprintModel

extension DetectorHead {
    /// The height and width of training patches, in pixels.
    package static let patchSide = 96
    /// The distance between adjacent positions of a heat map, in pixels of a patch.
    package static let heatMapStride = 16

    /// Returns the default head of the logo detector network, with an image pyramid of eight levels.
    ///
    /// Adjacent levels differ by a factor of at most 1.6. An object covers 30 to 62 % of the side of a training patch. On at least one level,
    /// an object has such a size if it covers at least 4.5 % of the side of a square with the area of the photo, and at most the shorter side of
    /// the photo.
    /// The smallest levels are closer to each other, because rounding their sides to multiples of the stride distorts them.
    package static func logoDetector(logos: [Logo], regressesBoxes: Bool = false) -> DetectorHead {
        DetectorHead(
            levels: [48, 64, 80, 112, 176, 272, 432, 688], stride: heatMapStride, span: 44, logos: logos,
            regressesBoxes: regressesBoxes)
    }
}

extension Preprocessing {
    /// The preprocessing of the logo detector network: (sample − 128) / 64.
    package static let logoDetector: Preprocessing = {
        var preprocessing = Preprocessing(
            width: DetectorHead.patchSide, height: DetectorHead.patchSide, cropAndScale: .scaleFill)
        preprocessing.mean = [128, 128, 128]
        preprocessing.scale = [1 / 64, 1 / 64, 1 / 64]
        return preprocessing
    }()
}
