"""TensorFlow: training steps, compiled into graphs, with the networks of networks.py."""

import os

from cases import TRAIN
from measure import arguments, measure, missing


def convolution(x, outputs, kernel, stride=1, depthwise=False, activation=None):
    # Pad as PyTorch does, by half the kernel on every side; for stride 1 this equals "same".
    if stride > 1 and kernel > 1:
        x = layers.ZeroPadding2D(kernel // 2)(x)
    padding = "same" if stride == 1 else "valid"
    if depthwise:
        x = layers.DepthwiseConv2D(kernel, stride, padding, use_bias=False)(x)
    else:
        x = layers.Conv2D(outputs, kernel, stride, padding, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU(max_value=activation)(x) if activation else x


RELU, RELU6 = float("inf"), 6.0


def lenet(x):
    for outputs in (20, 50):
        x = layers.MaxPool2D()(layers.Conv2D(outputs, 5)(x))
    return layers.Dense(500, "relu")(layers.Flatten()(x))


def logonet(x, channels=(32, 64, 128, 256)):
    for outputs in channels:
        x = layers.MaxPool2D()(convolution(x, outputs, 3, activation=RELU))
    return layers.GlobalAveragePooling2D()(x)


def mobilenet_v1(x):
    x = convolution(x, 32, 3, 2, activation=RELU6)
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + 5 * [(512, 1)] + [(1024, 2), (1024, 1)]
    for outputs, stride in blocks:
        x = convolution(x, None, 3, stride, depthwise=True, activation=RELU6)
        x = convolution(x, outputs, 1, activation=RELU6)
    return layers.GlobalAveragePooling2D()(x)


def resnet_50(x):
    x = convolution(x, 64, 7, 2, activation=RELU)
    x = layers.MaxPool2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, (inner, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            branch = convolution(x, inner, 1, activation=RELU)
            branch = convolution(branch, inner, 3, stride, activation=RELU)
            branch = convolution(branch, 4 * inner, 1)
            shortcut = x if block else convolution(x, 4 * inner, 1, stride)
            x = layers.ReLU()(layers.Add()([branch, shortcut]))
    return layers.GlobalAveragePooling2D()(x)


NETWORKS = {
    "lenet": lenet, "logonet": logonet, "logonet-width-0.75": lambda x: logonet(x, (24, 48, 96, 192)),
    "mobilenet-v1": mobilenet_v1, "resnet-50": resnet_50,
}


def step_of(case):
    name, size, channels, batch, labels = case
    inputs = tensorflow.keras.Input((size, size, channels))
    features = NETWORKS[name](inputs)
    network = tensorflow.keras.Model(inputs, layers.Dense(labels)(features) if labels else features)
    images = tensorflow.random.normal((batch, size, size, channels))
    if not labels:
        predict = tensorflow.function(lambda: network(images, training=False))
        return lambda: predict().numpy(), batch
    targets = tensorflow.range(batch) % labels
    optimizer = tensorflow.keras.optimizers.SGD(0.001, momentum=0.9)
    loss_of = tensorflow.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tensorflow.function
    def train():
        with tensorflow.GradientTape() as tape:
            loss = loss_of(targets, network(images, training=True))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    return lambda: train().numpy(), batch


options = arguments("Measures TensorFlow.", ["tensorflow"])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import tensorflow
except ModuleNotFoundError as error:
    missing(error)
tensorflow.config.threading.set_intra_op_parallelism_threads(options.threads)
tensorflow.config.threading.set_inter_op_parallelism_threads(1)
layers = tensorflow.keras.layers
step, batch = step_of(TRAIN[options.case])
measure(options, step, "images/s", batch, batch, version=tensorflow.__version__)
