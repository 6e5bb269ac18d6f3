/// The scratch memory of passes with gradients.
extension ConvolutionProduct {
    /// The number of floats before the windows in scratch memory: with gradients, the packed weights or, if there is a gradient of the weights, its
    /// buffers.
    static func windowOffset(_ layer: Convolution, _ context: LayerContext, workers: Int) -> Int {
        guard context.output.gradient != nil else { return 0 }
        let input = context.input.shape
        guard context.parameterGradients[0] == nil else {
            return weightScratchCount(layer, over: input, copies: context.algorithm == .im2col, workers: workers)
        }
        return context.usesBFloat16
            ? rowLength(layer, over: input) * layer.outputChannels
            : packedCount(layer, over: input, rows: context.part.total * context.output.shape.pixels)
    }

    /// The number of floats of scratch memory of a pass that only computes the gradient of the input: windows, and packed weights.
    static func inputGradientScratchCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, rows: Int, workers: Int
    ) -> Int {
        windowCount(layer, over: input, algorithm: algorithm, workers: workers)
            + packedCount(layer, over: input, rows: rows)
    }

    /// The number of floats of the weights that a pass over `rows` windows packs.
    private static func packedCount(_ layer: Convolution, over input: TensorShape, rows: Int) -> Int {
        fitsPanels(layer) && rows >= rowsForPanels ? rowLength(layer, over: input) * layer.outputChannels : 0
    }
}
