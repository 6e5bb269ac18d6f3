internal import ImprintCore

extension Artwork {
    /// Returns a random synthetic hard negative: a look-alike of the logo that is not the logo, and the name of its kind.
    ///
    /// Hard-negative mining, which finds regions of photos that a logo detector takes for the logo, is part of ImprintTraining.
    func hardNegative(_ random: inout RandomStream) -> (kind: String, design: Design) {
        let lettering = Lettering.standard
        let toneCount = max(tones.count, 1)
        let choice = random.uniform()
        if choice < 0.07 { return ("nothing", .nothing) }
        if choice < 0.15 {
            let word = lettering.word(letters: 3...9, tone: random.index(below: toneCount), &random)
            return ("wordmark", Design(fitting: word))
        }
        if choice < 0.24 {
            return ("words", Design(fitting: lettering.words(tone: random.index(below: toneCount), &random)))
        }
        switch source {
        case .recipe(let logos):
            let other = logos.hardNegatives.choice(&random)
            return (other.kind.rawValue, Design(other.logo(&random)))
        case .image(let logos):
            if choice < 0.72 {
                for _ in 0..<8 {
                    if let hardNegative = logos.hardNegative(&random) { return hardNegative }
                }
            }
            for _ in 0..<8 {
                let design = LookAlike.design(tones: toneCount, &random)
                if logos.isDistinct(design) { return ("look-alike", design) }
            }
            return ("nothing", .nothing)
        }
    }

    /// Whether a design differs visibly from the logo; a recipe is not compared.
    func isDistinct(_ design: Design) -> Bool {
        if case .image(let logos) = source { logos.isDistinct(design) } else { true }
    }
}
