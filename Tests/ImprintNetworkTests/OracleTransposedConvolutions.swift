import ImprintCore

@testable import ImprintNetwork

extension OracleTests.Case {
    init(
        _ layer: TransposedConvolution, over input: TensorShape, to output: TensorShape, batch: Int = 3,
        as algorithm: Algorithm
    ) {
        self.layer = layer
        naive = NaiveTransposedConvolution(input: input, output: output, layer: layer)
        self.input = input
        self.batch = batch
        self.algorithm = algorithm
    }
}

extension OracleTests {
    /// Output sizes as in PyTorch (ConvTranspose2d), except for `same`, which PyTorch does not support.
    static let transposed: [Case] = [
        Case(
            TransposedConvolution(outputChannels: 3, kernelSize: 2, stride: 2), over: shape(4, 5, 2),
            to: shape(8, 10, 3), as: .im2col),
        Case(
            TransposedConvolution(outputChannels: 3, kernelSize: 1), over: shape(4, 5, 2), to: shape(4, 5, 3),
            as: .matrixProduct),
        Case(
            TransposedConvolution(
                outputChannels: 2, kernelSize: 3, stride: 2, padding: .all(1), outputPadding: 1, hasBias: false),
            over: shape(3, 4, 5), to: shape(6, 8, 2), batch: 1, as: .im2col),
        Case(
            TransposedConvolution(
                outputChannels: 6, kernelSize: Size2D(height: 3, width: 2), stride: Size2D(height: 1, width: 3),
                padding: .explicit(top: 1, left: 0, bottom: 2, right: 1),
                outputPadding: Size2D(height: 0, width: 2), dilation: Size2D(height: 2, width: 1), groups: 2),
            over: shape(4, 3, 4), to: shape(5, 9, 6), as: .im2col),
        Case(
            TransposedConvolution(outputChannels: 7, kernelSize: 4, stride: 2, padding: .all(1), groups: 7),
            over: shape(5, 1, 7), to: shape(10, 2, 7), as: .direct),
        // The kernel is smaller than the stride, so some output pixels have no input pixel.
        Case(
            TransposedConvolution(outputChannels: 2, kernelSize: 2, stride: 3, padding: .same), over: shape(2, 3, 3),
            to: shape(6, 9, 2), as: .im2col),
        Case(
            TransposedConvolution(outputChannels: 3, kernelSize: 5, stride: 2, padding: .same), over: shape(3, 2, 2),
            to: shape(6, 4, 3), as: .im2col),
        Case(
            TransposedConvolution(outputChannels: 17, kernelSize: 3, padding: .all(1)), over: shape(6, 5, 19),
            to: shape(6, 5, 17), as: .winograd),
        // One pixel becomes an image.
        Case(
            TransposedConvolution(outputChannels: 33, kernelSize: 4), over: shape(1, 1, 65), to: shape(4, 4, 33),
            batch: 5,
            as: .im2col),
        // The gradient of the input packs the weights, because there are more than 2,048 pixels.
        Case(
            TransposedConvolution(outputChannels: 5, kernelSize: 4, stride: 2, padding: .all(1)),
            over: shape(33, 32, 6), to: shape(66, 64, 5), batch: 2, as: .im2col),
    ]
}
