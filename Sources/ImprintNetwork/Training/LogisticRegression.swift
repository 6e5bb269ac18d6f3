package import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Fits a head on fixed features: softmax or multi-label logistic regression with L2 regularization, minimized with L-BFGS.
///
/// The objective, for weights W [channels, labels] and a bias b [labels], is
///
/// loss = 1 / n · Σᵢ loss(Wᵀ xᵢ + b, tᵢ) + λ / 2 · ‖W‖²
///
/// where the loss of a row is cross-entropy after a softmax, or the sum of the binary cross-entropies of all labels after a
/// sigmoid. The features xᵢ are standardized to mean 0 and standard deviation about 1 in each channel, so one λ suits the features
/// of every network. The returned head reads the original features. The bias is not regularized, so the bias of a label without rows
/// decreases in each iteration: its optimum is −∞.
///
/// Class weights act as in `SoftmaxCrossEntropy` and `BinaryCrossEntropy`: with a softmax, the weight of its label multiplies the loss of
/// a row, and the sum of these weights replaces n; with a sigmoid, the weights multiply the positive terms.
///
/// A fit ends if the norm of the gradient is below 10⁻⁴ of that at its start, if an iteration reduces the loss by less than
/// 10⁻⁷ of it, if no step along the search direction reduces the loss, or after the maximum number of iterations.
///
/// The result is bitwise equal for any number of threads: the rows are divided into 16 fixed blocks, whose gradients are added in
/// order.
///
/// Source: Nocedal and Wright, "Numerical optimization", 2006, chapter 7.2 (L-BFGS).
package struct LogisticRegression {
    /// A dense layer: logits = Wᵀ x + b.
    package struct Head: Sendable, Equatable {
        /// [channels, labels].
        package var weights: [Float]
        /// [labels].
        package var bias: [Float]
    }

    /// The function from logits to probabilities.
    package enum Link: Sendable {
        /// Every row has one label.
        case softmax
        /// A row has any number of labels.
        case sigmoid
    }

    private let rows: Int
    private let channels: Int
    private let labels: Int
    /// [rows, channels].
    private let features: [Float]
    /// The labels of each row.
    private let targets: [[Int]]
    private let link: Link
    /// The weight of each label; nil for weights of 1.
    private let classWeights: [Float]?
    /// The divisor n of the sum over the rows.
    private let totalWeight: Double
    private let standardization: Standardization
    private let workers: Workers
    private let blocks: Int

    /// Creates a regression problem.
    /// - Parameters:
    ///   - features: Finite features, [rows, channels], at least one row and one channel; a channel may be constant.
    ///   - targets: The different labels of each row, in 0..<labels; a label may have no rows.
    ///   - labels: The number of labels, at least 1.
    ///   - link: Softmax for one label per row, sigmoid for any number.
    ///   - classWeights: The weight of each label, more than 0; nil for weights of 1.
    package init(
        features: [Float], targets: [[Int]], labels: Int, link: Link = .softmax, classWeights: [Float]? = nil,
        workers: Workers
    ) {
        precondition(
            link == .sigmoid || targets.allSatisfy { $0.count == 1 }, "every row must have one label")
        precondition(
            !targets.isEmpty && features.count % targets.count == 0, "every row must have features, [rows, channels]"
        )
        precondition(
            targets.allSatisfy { $0.allSatisfy { (0..<labels).contains($0) } } && labels > 0,
            "every label must be in 0..<\(labels)")
        precondition(
            classWeights.map { $0.count == labels && $0.allSatisfy { $0 > 0 } } ?? true,
            "there must be \(labels) class weights of more than 0")
        rows = targets.count
        channels = features.count / targets.count
        self.labels = labels
        self.targets = targets
        self.link = link
        self.classWeights = classWeights
        totalWeight =
            if link == .softmax, let classWeights {
                targets.reduce(0.0) { $0 + Double(classWeights[$1[0]]) }
            } else {
                Double(targets.count)
            }
        self.workers = workers
        blocks = min(16, rows)
        let standardization = features.withUnsafeBufferPointer {
            Standardization($0, channels: features.count / targets.count)
        }
        var standardized = features
        standardized.withUnsafeMutableBufferPointer { standardization.apply(to: $0) }
        self.standardization = standardization
        self.features = standardized
    }

    /// The mean of each channel.
    package var means: [Float] { standardization.means }

    /// Fits a head for each weight decay λ, from the largest to the smallest; each fit starts from the previous result.
    /// - Parameters:
    ///   - weightDecays: The values of λ, > 0, in descending order.
    ///   - maximumIterations: The maximum number of L-BFGS iterations of each fit.
    /// - Returns: The heads in the order of `weightDecays`, with finite parameters.
    /// - Throws: `NetworkError.outOfMemory` if the BLAS library cannot allocate its buffer.
    package func heads(weightDecays: [Float], maximumIterations: Int = 60) throws(NetworkError) -> [Head] {
        try GEMM.prepare()
        var parameters = [Float](repeating: 0, count: (channels + 1) * labels)
        return weightDecays.map { decay in
            minimize(&parameters, weightDecay: decay, maximumIterations: maximumIterations)
            return head(parameters)
        }
    }

    /// Converts parameters for standardized features to a head for the original ones.
    private func head(_ parameters: [Float]) -> Head {
        var weights = Array(parameters[..<(channels * labels)])
        var bias = Array(parameters[(channels * labels)...])
        standardization.absorb(into: &weights, bias: &bias)
        return Head(weights: weights, bias: bias)
    }

    // MARK: L-BFGS

    /// Minimizes the loss from `parameters` [channels + 1, labels]; the last row is the bias.
    private func minimize(_ parameters: inout [Float], weightDecay: Float, maximumIterations: Int) {
        var gradient = parameters
        var loss = evaluate(parameters, weightDecay, &gradient)
        let initialNorm = dot(gradient, gradient).squareRoot()
        var steps: [(move: [Float], change: [Float], curvature: Double)] = []
        for _ in 0..<maximumIterations {
            var direction = descent(gradient, steps)
            var slope = dot(gradient, direction)
            if slope >= 0 {
                // Rounding errors have made the curvature estimate useless: restart with the gradient.
                steps = []
                direction = gradient.map { -$0 }
                slope = -dot(gradient, gradient)
            }
            guard slope < 0 else { return }
            var step = steps.isEmpty ? min(1, 1 / (-slope).squareRoot()) : 1
            var candidate = parameters
            var candidateGradient = gradient
            var candidateLoss = loss
            var isFound = false
            for _ in 0..<20 {
                for index in candidate.indices { candidate[index] = parameters[index] + Float(step) * direction[index] }
                candidateLoss = evaluate(candidate, weightDecay, &candidateGradient)
                // Armijo condition: the loss decreases by at least a fraction of the decrease that the slope predicts.
                isFound = candidateLoss <= loss + 1e-4 * step * slope
                if isFound { break }
                step /= 2
            }
            guard isFound else { return }
            let move = zip(candidate, parameters).map { $0 - $1 }
            let change = zip(candidateGradient, gradient).map { $0 - $1 }
            let curvature = dot(move, change)
            if curvature > 1e-12 {
                steps.append((move, change, curvature))
                if steps.count > 10 { steps.removeFirst() }
            }
            let gain = loss - candidateLoss
            (parameters, gradient, loss) = (candidate, candidateGradient, candidateLoss)
            if dot(gradient, gradient).squareRoot() < 1e-4 * initialNorm || gain < 1e-7 * abs(loss) { return }
        }
    }

    /// Returns the search direction −H⁻¹ · gradient, with the inverse Hessian H⁻¹ estimated from the last steps (two-loop
    /// recursion).
    private func descent(
        _ gradient: [Float], _ steps: [(move: [Float], change: [Float], curvature: Double)]
    ) -> [Float] {
        var direction = gradient.map { -$0 }
        var factors: [Double] = []
        for step in steps.reversed() {
            let factor = dot(step.move, direction) / step.curvature
            factors.append(factor)
            add(step.change, times: -factor, to: &direction)
        }
        if let last = steps.last {
            let scale = Float(last.curvature / dot(last.change, last.change))
            for index in direction.indices { direction[index] *= scale }
        }
        for (step, factor) in zip(steps, factors.reversed()) {
            let correction = dot(step.change, direction) / step.curvature
            add(step.move, times: factor - correction, to: &direction)
        }
        return direction
    }

    /// Returns the loss and overwrites `gradient`.
    private func evaluate(_ parameters: [Float], _ weightDecay: Float, _ gradient: inout [Float]) -> Double {
        let size = parameters.count
        var partialGradients = [Float](repeating: 0, count: blocks * size)
        var losses = [Double](repeating: 0, count: blocks)
        partialGradients.withUnsafeMutableBufferPointer { partialGradients in
            losses.withUnsafeMutableBufferPointer { losses in
                nonisolated(unsafe) let (partialGradients, losses) = (partialGradients, losses)
                workers.parallelForEach(blocks) { block, _ in
                    losses[block] = evaluate(
                        rows: chunkRange(block, of: blocks, total: rows), parameters,
                        UnsafeMutableBufferPointer(
                            rebasing: partialGradients[(block * size)..<((block + 1) * size)]))
                }
            }
        }
        for index in 0..<size {
            var sum: Float = 0
            for block in 0..<blocks { sum += partialGradients[block * size + index] }
            gradient[index] = sum
        }
        var penalty: Double = 0
        for index in 0..<(channels * labels) {
            penalty += Double(parameters[index]) * Double(parameters[index])
            gradient[index] += weightDecay * parameters[index]
        }
        return losses.reduce(0, +) + Double(weightDecay) / 2 * penalty
    }

    /// Computes the contribution of a range of rows to the loss and its gradient.
    private func evaluate(
        rows range: Range<Int>, _ parameters: [Float], _ gradient: UnsafeMutableBufferPointer<Float>
    ) -> Double {
        let count = range.count
        var loss: Double = 0
        var residuals = [Float](repeating: 0, count: count * labels)
        features.withUnsafeBufferPointer { features in
            parameters.withUnsafeBufferPointer { parameters in
                residuals.withUnsafeMutableBufferPointer { residuals in
                    guard let rows = features.baseAddress.map({ $0 + range.lowerBound * channels }),
                        let weights = parameters.baseAddress, let logits = residuals.baseAddress,
                        let gradient = gradient.baseAddress
                    else { return }
                    GEMM.multiply(
                        rows: count, columns: labels, inner: channels, GEMM.Matrix(rows, stride: channels),
                        GEMM.Matrix(weights, stride: labels), into: logits, stride: labels)
                    let bias = weights + channels * labels
                    let biasGradient = gradient + channels * labels
                    for row in 0..<count {
                        loss += residual(
                            logits + row * labels, bias, targets[range.lowerBound + row], biasGradient)
                    }
                    GEMM.multiply(
                        rows: channels, columns: labels, inner: count,
                        GEMM.Matrix(rows, stride: channels, transposed: true),
                        GEMM.Matrix(UnsafePointer(logits), stride: labels), into: gradient, stride: labels)
                }
            }
        }
        return loss
    }

    /// Replaces the logits of a row by the gradient of its loss, and returns the loss, both divided by the total weight.
    private func residual(
        _ logits: UnsafeMutablePointer<Float>, _ bias: UnsafePointer<Float>, _ targets: [Int],
        _ biasGradient: UnsafeMutablePointer<Float>
    ) -> Double {
        for label in 0..<labels { logits[label] += bias[label] }
        // The loss without the logits of the targets, which both losses subtract.
        var loss: Double = 0
        for target in targets { loss -= Double(logits[target]) }
        var rowWeight: Float = 1
        switch link {
        case .softmax:
            loss += softmax(logits)
            for target in targets {
                logits[target] -= 1
                rowWeight = weight(target)
            }
        case .sigmoid:
            if classWeights != nil {
                for target in targets { loss += Double((weight(target) - 1) * softplus(-logits[target])) }
            }
            for label in 0..<labels {
                let logit = logits[label]
                loss += Double(softplus(logit))
                logits[label] = 1 / (1 + expf(-logit))
            }
            for target in targets { logits[target] = weight(target) * (logits[target] - 1) }
        }
        for label in 0..<labels {
            logits[label] = rowWeight * logits[label] / Float(totalWeight)
            biasGradient[label] += logits[label]
        }
        return Double(rowWeight) * loss / totalWeight
    }

    private func weight(_ label: Int) -> Float { classWeights?[label] ?? 1 }

    /// Returns log(1 + eˣ) without overflow.
    private func softplus(_ x: Float) -> Float { max(x, 0) + log1pf(expf(-abs(x))) }

    /// Replaces logits by probabilities, and returns the logarithm of the sum of the exponentials of the logits.
    private func softmax(_ logits: UnsafeMutablePointer<Float>) -> Double {
        var largest = -Float.infinity
        for label in 0..<labels { largest = max(largest, logits[label]) }
        var sum: Float = 0
        for label in 0..<labels {
            logits[label] = expf(logits[label] - largest)
            sum += logits[label]
        }
        for label in 0..<labels { logits[label] /= sum }
        return Double(largest) + log(Double(sum))
    }

    private func dot(_ left: [Float], _ right: [Float]) -> Double {
        var sum: Double = 0
        for index in left.indices { sum += Double(left[index]) * Double(right[index]) }
        return sum
    }

    private func add(_ vector: [Float], times factor: Double, to sum: inout [Float]) {
        let factor = Float(factor)
        for index in sum.indices { sum[index] += factor * vector[index] }
    }
}

extension LogisticRegression.Head {
    /// Returns the logits of features.
    /// - Parameter features: [rows, channels]; any number of rows.
    /// - Returns: The logits Wᵀ x + b of each row, [labels].
    package func logits(_ features: [Float]) -> [[Float]] {
        let (labels, channels) = (bias.count, weights.count / bias.count)
        let rows = features.count / channels
        var logits: [Float] = []
        logits.reserveCapacity(rows * labels)
        for _ in 0..<rows { logits += bias }
        features.withUnsafeBufferPointer { features in
            weights.withUnsafeBufferPointer { weights in
                logits.withUnsafeMutableBufferPointer { logits in
                    guard rows > 0, let features = features.baseAddress, let weights = weights.baseAddress,
                        let logits = logits.baseAddress
                    else { return }
                    GEMM.multiply(
                        rows: rows, columns: labels, inner: channels, GEMM.Matrix(features, stride: channels),
                        GEMM.Matrix(weights, stride: labels), into: logits, stride: labels, accumulating: true)
                }
            }
        }
        return (0..<rows).map { Array(logits[($0 * labels)..<(($0 + 1) * labels)]) }
    }
}
