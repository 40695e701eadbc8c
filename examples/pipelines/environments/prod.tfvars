kafka_bootstrap_servers = "kafka.prod.example.com:9092"
userid                  = "User_6"
