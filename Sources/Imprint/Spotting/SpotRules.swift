package import ImprintFormats
package import ImprintImages

extension Spotting {
    /// How LogoSpot looks at pictures.
    package static func logospot(marks: [Mark]) -> Spotting {
        Spotting(levels: [96, 136, 192, 272, 384, 544], stride: 16, span: 44, marks: marks)
    }
}

extension Preprocessing {
    /// How LogoSpot is given pictures: (sample − 128) / 64.
    package static let logospot: Preprocessing = {
        var rules = Preprocessing(width: SpotPhase.patchSide, height: SpotPhase.patchSide, cropAndScale: .scaleFill)
        rules.mean = [128, 128, 128]
        rules.scale = [1 / 64, 1 / 64, 1 / 64]
        return rules
    }()
}
