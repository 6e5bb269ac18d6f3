internal import ImprintCore

extension Artwork {
    /// What could be taken for the mark but is not it, and how it came about in a word or two.
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
        case .recipe(let marks):
            let other = marks.nearMisses.choice(&random)
            return (other.kind.rawValue, Design(other.mark(&random)))
        case .picture(let marks):
            if choice < 0.72 {
                for _ in 0..<8 {
                    if let miss = marks.hardNegative(&random) { return miss }
                }
            }
            for _ in 0..<8 {
                let design = LookAlike.design(tones: toneCount, &random)
                if marks.isOther(design) { return ("look-alike", design) }
            }
            return ("nothing", .nothing)
        }
    }
}
