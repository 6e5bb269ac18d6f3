"""The networks of Imprint in PyTorch, with the same layers and shapes; see docs/reference/networks.md."""

from torch import nn


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=None):
    """A convolution without bias, batch normalization and an activation."""
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation] if activation else []))


def relu():
    return nn.ReLU(inplace=True)


def head(features, labels):
    """Global average pooling and, if there are labels, a dense layer."""
    layers = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *([nn.Linear(features, labels)] if labels else []))


def lenet(labels):
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), relu(), nn.Linear(500, labels))


def logonet(labels, channels=(32, 64, 128, 256)):
    layers, inputs = [], 3
    for outputs in channels:
        layers += [convolution(inputs, outputs, 3, activation=relu()), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(*layers, head(inputs, labels))


def mobilenet_v1(labels):
    layers, inputs = [convolution(3, 32, 3, stride=2, activation=nn.ReLU6(inplace=True))], 32
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + 5 * [(512, 1)] + [(1024, 2), (1024, 1)]
    for outputs, stride in blocks:
        layers.append(convolution(inputs, inputs, 3, stride, groups=inputs, activation=nn.ReLU6(inplace=True)))
        layers.append(convolution(inputs, outputs, 1, activation=nn.ReLU6(inplace=True)))
        inputs = outputs
    return nn.Sequential(*layers, head(inputs, labels))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, expansion, kernel, stride):
        super().__init__()
        inner = expansion * inputs
        expand = [convolution(inputs, inner, 1, activation=nn.ReLU6(inplace=True))] if expansion > 1 else []
        self.branch = nn.Sequential(
            *expand, convolution(inner, inner, kernel, stride, inner, activation=nn.ReLU6(inplace=True)),
            convolution(inner, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.branch(x) if self.adds else self.branch(x)


def inverted_residuals(labels, stages):
    """MobileNetV2 and EfficientNet-Lite. A stage: expansion, kernel size, channels, number of blocks, stride of the first one."""
    layers, inputs = [convolution(3, 32, 3, stride=2, activation=nn.ReLU6(inplace=True))], 32
    for expansion, kernel, outputs, blocks, stride in stages:
        for block in range(blocks):
            layers.append(InvertedResidual(inputs, outputs, expansion, kernel, 1 if block else stride))
            inputs = outputs
    return nn.Sequential(*layers, convolution(inputs, 1280, 1, activation=nn.ReLU6(inplace=True)), head(1280, labels))


def mobilenet_v2(labels):
    return inverted_residuals(labels, [
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 3, 32, 3, 2), (6, 3, 64, 4, 2), (6, 3, 96, 3, 1), (6, 3, 160, 3, 2),
        (6, 3, 320, 1, 1)])


def efficientnet_lite0(labels):
    """Padded equally on all sides, as PyTorch models are; Imprint pads as TensorFlow does, with as many operations."""
    return inverted_residuals(labels, [
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
        (6, 3, 320, 1, 1)])


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride, projects):
        super().__init__()
        self.branch = nn.Sequential(
            convolution(inputs, inner, 1, activation=relu()), convolution(inner, inner, 3, stride, activation=relu()),
            convolution(inner, 4 * inner, 1))
        self.shortcut = convolution(inputs, 4 * inner, 1, stride) if projects else nn.Identity()
        self.activation = relu()

    def forward(self, x):
        return self.activation(self.branch(x) + self.shortcut(x))


def resnet_50(labels):
    layers, inputs = [convolution(3, 64, 7, stride=2, activation=relu()), nn.MaxPool2d(3, 2, padding=1)], 64
    for stage, (inner, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, inner, 2 if stage and not block else 1, projects=block == 0))
            inputs = 4 * inner
    return nn.Sequential(*layers, head(inputs, labels))


def conv3x3_net(labels):
    layers, inputs = [convolution(3, 32, 3, stride=2, activation=relu())], 32
    for block, (outputs, count) in enumerate([(64, 1), (128, 2), (256, 3), (512, 3), (512, 1)]):
        layers += [nn.MaxPool2d(2)] if block else []
        for _ in range(count):
            layers.append(convolution(inputs, outputs, 3, activation=relu()))
            inputs = outputs
    return nn.Sequential(*layers, head(inputs, labels))


NETWORKS = {
    "lenet": lenet, "logonet": logonet, "logonet-width-0.75": lambda labels: logonet(labels, (24, 48, 96, 192)),
    "mobilenet-v1": mobilenet_v1, "mobilenet-v2": mobilenet_v2, "efficientnet-lite0": efficientnet_lite0,
    "resnet-50": resnet_50, "conv3x3-net": conv3x3_net,
}
