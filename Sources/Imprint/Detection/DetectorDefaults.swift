package import ImprintImages
package import ImprintModel

extension DetectorHead {
    /// The height and width of the network's input in training, in pixels.
    package static let patchSide = 96

    /// How LogoSpot looks at pictures.
    package static func logoDetector(marks: [Mark]) -> DetectorHead {
        DetectorHead(levels: [96, 136, 192, 272, 384, 544], stride: 16, span: 44, marks: marks)
    }
}

extension Preprocessing {
    /// How LogoSpot is given pictures: (sample − 128) / 64.
    package static let logoDetector: Preprocessing = {
        var rules = Preprocessing(
            width: DetectorHead.patchSide, height: DetectorHead.patchSide, cropAndScale: .scaleFill)
        rules.mean = [128, 128, 128]
        rules.scale = [1 / 64, 1 / 64, 1 / 64]
        return rules
    }()
}
