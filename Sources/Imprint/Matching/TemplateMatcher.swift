package import ImprintCore
package import ImprintImages
internal import ImprintNetwork

/// A matcher that compares templates with an image, at all positions and levels of an image pyramid.
package struct TemplateMatcher: Sendable {
    /// A part of a logo, as the features of several views; its score is the score of the best view.
    package struct Template: Sendable {
        /// The height and width of the part in its views, in pixels.
        package let height: Float
        package let width: Float
        /// The features of each view; all views have the same size.
        package let views: [LocalFeatureMaps]

        /// Creates a template.
        package init(height: Float, width: Float, views: [LocalFeatureMaps]) {
            (self.height, self.width, self.views) = (height, width, views)
        }
    }

    /// A match of a template in an image.
    package struct Match: Hashable, Sendable {
        /// The normalized correlation, −1…1, averaged over the depths of the features.
        package var score: Float
        /// The part of the image that matches.
        package var box: NormalizedRectangle

        /// Creates a match.
        package init(score: Float, box: NormalizedRectangle) { (self.score, self.box) = (score, box) }
    }

    /// The levels of the image pyramid: each level has the area of a square with this side, in pixels.
    package static let levels = [96, 136, 192, 272, 384, 544, 768, 1088]

    /// A group of templates whose views have the same size.
    private struct Group: Sendable {
        /// The indices of the templates.
        let members: [Int]
        /// The number of views of each template.
        let views: [Int]
        /// The correlations of each depth.
        let correlations: [NormalizedCorrelation]
    }

    /// The size of each template in its views, in pixels.
    private let sizes: [(height: Float, width: Float)]
    private let channels: [Int]
    private let groups: [Group]

    /// The number of windows that a thread compares at once.
    private static let blockSize = 256

    /// Creates a matcher.
    /// - Parameter channels: The number of channels of each depth of the features.
    package init(_ templates: [Template], channels: [Int]) {
        sizes = templates.map { ($0.height, $0.width) }
        self.channels = channels
        let windows = templates.map { Size2D(height: $0.views[0].height, width: $0.views[0].width) }
        let windowSizes = windows.reduce(into: [Size2D]()) { if !$0.contains($1) { $0.append($1) } }
        groups = windowSizes.map { size in
            let members = windows.indices.filter { windows[$0] == size }
            let views = members.flatMap { templates[$0].views }
            return Group(
                members: members, views: members.map { templates[$0].views.count },
                correlations: channels.enumerated().map { depth, channels in
                    NormalizedCorrelation(window: size, channels: channels, templates: views.map { $0.maps[depth] })
                })
        }
    }

    /// Returns the scores of each template in an image.
    /// - Parameter network: The network that computed the features of the templates.
    /// - Throws: `ImprintError.nonFiniteOutput` if a feature is not finite, `ImprintError.unsupportedImageSize` if the network does not accept
    ///   a level, `ImprintError.outOfMemory`.
    package func scores(
        in image: RasterImage, _ network: AnySizeNetwork, workers: Workers
    ) throws(ImprintError) -> TemplateScores {
        var scores = TemplateScores(templates: sizes.count)
        try network.forEachLevel(
            of: image, levels: Self.levels, stride: LocalFeatures.stride
        ) { map, level throws(ImprintError) in
            let features = LocalFeatureMaps(map, channels: channels)
            guard features.areFinite else { throw .nonFiniteOutput(network: network.network.name) }
            do throws(NetworkError) {
                try append(to: &scores, features, level, workers)
            } catch .outOfMemory(let bytes) {
                throw .outOfMemory(byteCount: bytes)
            } catch {
                preconditionFailure("matching failed: \(error)")
            }
        }
        return scores
    }

    /// Appends the scores of a level of the pyramid.
    private func append(
        to scores: inout TemplateScores, _ features: LocalFeatureMaps, _ level: RasterImage, _ workers: Workers
    ) throws(NetworkError) {
        let maps = features.maps.map { NormalizedCorrelation.Map($0, height: features.height, width: features.width) }
        for group in groups {
            let correlation = group.correlations[0]
            let size = correlation.resultSize(height: features.height, width: features.width)
            let count = size.rows * size.columns
            let blocks = try workers.parallelMap((count + Self.blockSize - 1) / Self.blockSize) {
                block throws(NetworkError) in
                try maxima(group, maps, windows: (block * Self.blockSize)..<min((block + 1) * Self.blockSize, count))
            }
            for (index, member) in group.members.enumerated() {
                scores.append(
                    TemplateScores.Map(
                        values: blocks.flatMap { $0[index] }, rows: size.rows, columns: size.columns,
                        window: correlation.window, padding: correlation.padding,
                        level: SIMD2(Float(level.width), Float(level.height)),
                        size: SIMD2(sizes[member].width, sizes[member].height)),
                    template: member)
            }
        }
    }

    /// Returns the scores of each template of a group in some windows: the highest correlations over its views.
    private func maxima(
        _ group: Group, _ maps: [NormalizedCorrelation.Map], windows: Range<Int>
    ) throws(NetworkError) -> [[Float]] {
        var sums = try group.correlations[0](maps[0], windows: windows)
        for depth in maps.indices.dropFirst() {
            let others = try group.correlations[depth](maps[depth], windows: windows)
            for index in sums.indices { sums[index] += others[index] }
        }
        let factor = 1 / Float(maps.count)
        var maxima = group.members.map { _ in [Float](repeating: -1, count: windows.count) }
        var index = 0
        for window in windows.indices {
            for (member, views) in group.views.enumerated() {
                var highest: Float = -1
                for _ in 0..<views {
                    highest = max(highest, sums[index] * factor)
                    index += 1
                }
                maxima[member][window - windows.lowerBound] = highest
            }
        }
        return maxima
    }
}
