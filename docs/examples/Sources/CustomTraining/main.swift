// CustomTraining MODEL: trains a network with a layer and an objective of this program, saves it as MODEL, loads it again and uses it.
import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork

guard CommandLine.arguments.count == 2 else { end("usage: CustomTraining MODEL", 64) }
let file = URL(filePath: CommandLine.arguments[1])
do {
    // A model file names its layers, so register yours before you load one.
    LayerRegistry.register(ChannelGain.self)
    let size = FocalLossObjective.size
    var builder = NetworkBuilder(name: "patches", input: TensorShape(height: size, width: size, channels: 3))
    builder.add(Convolution(outputChannels: 8, kernelSize: 3))
    builder.add(ChannelGain(), named: "gain")
    builder.add(ReLU())
    builder.add(GlobalAveragePool())
    builder.add(Dense(outputChannels: FocalLossObjective.labels.count), named: "head")
    builder.add(Softmax())
    let network = try builder.network()

    // The loss contains the softmax, so train the network without its last layer.
    let objective = try FocalLossObjective(network.logits(), stepsPerEpoch: 20, seed: 1)
    let loop = try TrainingLoop(
        objective,
        options: TrainingLoop.Options(
            rounds: .epochs(.init(count: 5, steps: 20, learningRate: 0.05)),
            optimizer: .sgd(SGD.Options(momentum: 0.9)), emaDecay: 0.9))
    _ = try loop.run(onEvent: { event in
        guard case .round(let epoch, _) = event else { return }
        let percent = Int(((epoch.validationAccuracy ?? 0) * 100).rounded())
        print("epoch \(epoch.epoch): loss \(epoch.loss), \(percent) % correct")
    })

    try ModelFile(
        network: network, parameters: loop.best ?? loop.evaluationParameters, labels: FocalLossObjective.labels,
        preprocessing: Preprocessing(width: size, height: size)
    ).write(to: file)
    let classifier = try ImageClassifier(contentsOf: file)
    var random = SplitMix64(state: 1_000_000)
    for (label, name) in FocalLossObjective.labels.enumerated() {
        let samples = FocalLossObjective.patch(label, using: &random)
        let best = try classifier.classify(RasterImage(width: size, height: size, channels: 3, samples: samples))[0]
        print("a \(name) patch: \(best.label) \(Int((best.confidence * 100).rounded())) %")
    }
} catch {
    end("\(error)", 1)
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
