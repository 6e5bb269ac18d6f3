/// The scores of held-out composites, which calibrate a logo that no photo shows.
///
/// Each set of composites is scanned only once, although every logo needs the composites of all logos.
final class HeldOutScores {
    private let scan: (_ logo: Int, _ isPositive: Bool) throws -> [[Float]]
    private var positives: [Int: [[Float]]] = [:]
    private var negatives: [Int: [[Float]]] = [:]

    /// - Parameter scan: Returns the scores of all logos in each composite of one logo, with the logo or with a hard negative.
    init(scan: @escaping (_ logo: Int, _ isPositive: Bool) throws -> [[Float]]) { self.scan = scan }

    /// Returns the scores of all logos in each composite of a logo: [composite][logo].
    func scores(of logo: Int, isPositive: Bool) throws -> [[Float]] {
        if let known = isPositive ? positives[logo] : negatives[logo] { return known }
        let scores = try scan(logo, isPositive)
        if isPositive { positives[logo] = scores } else { negatives[logo] = scores }
        return scores
    }

    /// Returns the scores of a logo in the composites of all logos.
    ///
    /// Photos of several logos rarely show this one, and the other logos are the images that resemble it most.
    func scores(of logo: Int, among count: Int) throws -> [(hasLogo: Bool, score: Float)] {
        try (0..<count).flatMap { other in
            try scores(of: other, isPositive: true).map { (other == logo, $0[logo]) }
                + scores(of: other, isPositive: false).map { (false, $0[logo]) }
        }
    }
}
